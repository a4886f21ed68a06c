"""URL patterns of the accounts application."""

from django.urls import path

from webapp.accounts import views

app_name = "accounts"
urlpatterns = [
    path("sign-in/", views.SignInView.as_view(), name="sign-in"),
    path("sign-in/<str:code>/", views.SignInView.as_view(), name="sign-in-at"),
    path("sign-out/", views.SignOutView.as_view(), name="sign-out"),
    path("password/", views.PasswordView.as_view(), name="password"),
    path("settings/", views.settings, name="settings"),
    path("people/", views.people, name="people"),
    path("organisation/names/", views.change_names, name="change-names"),
    path("organisation/rename/", views.rename_organisation, name="rename-organisation"),
    path("people/<int:pk>/role/", views.change_role, name="change-role"),
    path("people/<int:pk>/active/", views.change_active, name="change-active"),
    path("people/<int:pk>/password/", views.reset_password, name="reset-password"),
]
