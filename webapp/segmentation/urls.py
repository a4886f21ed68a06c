"""URL patterns of the segmentation application."""

from django.urls import path

from webapp.segmentation.views import (
    files,
    image_sets,
    objects,
    painting,
    predicted_images,
    predictions,
    segmenters,
    set_views,
)

app_name = "segmentation"
urlpatterns = [
    path("image-sets/", image_sets.image_set_list, name="image-sets"),
    path("image-sets/new/", image_sets.image_set_new, name="image-set-new"),
    path("image-sets/<uuid:pk>/", image_sets.image_set_page, name="image-set"),
    path("image-sets/<uuid:pk>/purge/", image_sets.image_set_purge_view, name="image-set-purge"),
    path("image-sets/<uuid:pk>/display/", set_views.image_set_view, name="image-set-view"),
    path("image-sets/<uuid:pk>/files/", files.image_file_upload, name="image-file-upload"),
    path(
        "image-sets/<uuid:pk>/files/<uuid:file_pk>/",
        files.image_file_content,
        name="image-file",
    ),
    path(
        "image-sets/<uuid:pk>/files/<uuid:file_pk>/thumbnail/",
        files.image_file_thumbnail,
        name="image-file-thumbnail",
    ),
    *[
        path(
            f"image-sets/<uuid:pk>/files/<uuid:file_pk>/{action}/",
            image_sets.image_file_action,
            {"action": action},
            name=f"image-file-{action}",
        )
        for action in ("role", "pair")
    ],
    path(
        "image-sets/<uuid:pk>/files/<uuid:file_pk>/remove/",
        image_sets.image_file_remove_view,
        name="image-file-remove",
    ),
    path("image-sets/<uuid:pk>/paint/", painting.paint_set, name="paint-set"),
    path("image-sets/<uuid:pk>/paint/classes/", painting.paint_classes, name="paint-classes"),
    path("image-sets/<uuid:pk>/paint/learn/", painting.paint_learn, name="paint-learn"),
    path("image-sets/<uuid:pk>/paint/<uuid:file_pk>/", painting.paint_page, name="paint"),
    *[
        path(
            f"image-sets/<uuid:pk>/paint/<uuid:file_pk>/{name}/",
            view,
            name=f"paint-{name}",
        )
        for name, view in (
            ("strokes", painting.paint_strokes),
            ("painted", painting.paint_painted),
            ("undo", painting.paint_undo),
            ("clear", painting.paint_clear),
            ("answer", painting.paint_answer),
            ("objects", painting.paint_objects),
            ("picture", painting.paint_picture),
        )
    ],
    path("image-models/", segmenters.segmenter_list, name="segmenters"),
    path("image-models/import/", segmenters.segmenter_import_view, name="segmenter-import"),
    path("image-models/new/", segmenters.segmenter_new, name="segmenter-new"),
    path("image-models/<uuid:pk>/", segmenters.segmenter_page, name="segmenter"),
    path("image-models/<uuid:pk>/live/", segmenters.segmenter_live, name="segmenter-live"),
    path(
        "image-models/<uuid:pk>/delete/", segmenters.segmenter_delete_view, name="segmenter-delete"
    ),
    path("image-models/<uuid:pk>/model.npz", segmenters.segmenter_file, name="segmenter-file"),
    path(
        "image-models/<uuid:pk>/preview/<int:number>.png",
        segmenters.segmenter_preview,
        name="segmenter-preview",
    ),
    path("predictions/", predictions.prediction_list, name="predictions"),
    path("predictions/new/", predictions.prediction_new, name="prediction-new"),
    path("predictions/<uuid:pk>/", predictions.prediction_page, name="prediction"),
    path("predictions/<uuid:pk>/live/", predictions.prediction_live, name="prediction-live"),
    path(
        "predictions/<uuid:pk>/go-on/", predictions.prediction_go_on_view, name="prediction-go-on"
    ),
    path(
        "predictions/<uuid:pk>/delete/",
        predictions.prediction_delete_view,
        name="prediction-delete",
    ),
    path(
        "predictions/<uuid:pk>/archive.zip",
        predictions.prediction_archive,
        name="prediction-archive",
    ),
    path("predictions/<uuid:pk>/numbers.csv", predictions.prediction_csv, name="prediction-csv"),
    path(
        "predictions/<uuid:pk>/compare/", predictions.prediction_compare, name="prediction-compare"
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/",
        predicted_images.predicted_image_page,
        name="predicted-image",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/objects/",
        predicted_images.predicted_image_objects,
        name="predicted-image-objects",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/count/",
        objects.image_objects,
        name="predicted-image-count",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/split/",
        objects.image_objects_split,
        name="predicted-image-split",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/corrections/",
        objects.image_corrections,
        name="predicted-image-corrections",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/corrections/add/",
        objects.image_correct,
        name="predicted-image-objects-correct",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/corrections/undo/",
        objects.image_correct_undo,
        name="predicted-image-objects-undo",
    ),
    path(
        "predictions/<uuid:pk>/objects/measure/",
        objects.objects_measure_view,
        name="prediction-objects-measure",
    ),
    path(
        "predictions/<uuid:pk>/objects/", predictions.prediction_objects, name="prediction-objects"
    ),
    path(
        "predictions/<uuid:pk>/objects.<str:kind>",
        predictions.prediction_objects_file,
        name="prediction-objects-file",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/correct/",
        predicted_images.predicted_image_correct,
        name="predicted-image-correct",
    ),
    path(
        "predictions/<uuid:pk>/<uuid:image_pk>/<str:kind>",
        predicted_images.predicted_image_file,
        name="predicted-image-file",
    ),
]
