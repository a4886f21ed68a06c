"""URL patterns of providers and second factors; allauth has those of the two protocols."""

from django.urls import path

from webapp.identity.views import codes, providers

app_name = "identity"
urlpatterns = [
    path("providers/", providers.provider_list, name="providers"),
    path("providers/new/", providers.new, name="provider-new"),
    path("providers/<int:pk>/", providers.provider, name="provider"),
    path("providers/<int:pk>/remove/", providers.remove, name="provider-remove"),
    path("oidc/<str:key>/back-channel-logout/", providers.back_channel, name="back-channel"),
    path("second-factor/", codes.second_factor, name="second-factor"),
    path("second-factor/code/", codes.code, name="code"),
    path("second-factor/duty/", codes.duty, name="duty"),
    path("people/<int:pk>/second-factor/", codes.remove_for, name="remove-second-factor"),
]
