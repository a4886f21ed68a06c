"""URL patterns of questionnaires: those of staff, and the short ones of students."""

from django.urls import URLPattern, URLResolver, include, path

from webapp.surveys.views import answers, clashes, languages, people, questions, staff, students

app_name = "surveys"

_questions = [
    path("add/", questions.add, name="question-add"),
    path("<slug:key>/", questions.edit, name="question"),
    path("<slug:key>/move/", questions.move, name="question-move"),
    path("<slug:key>/place/", questions.place, name="question-place"),
    path("<slug:key>/remove/", questions.remove, name="question-remove"),
]
_sections = [
    path("add/", questions.section_add, name="section-add"),
    path("<int:section>/rename/", questions.section_rename, name="section-rename"),
    path("<int:section>/remove/", questions.section_remove, name="section-remove"),
]
_people = [
    path("", people.people, name="people"),
    path("add/", people.add, name="people-add"),
    path("send/", people.send, name="mails-send"),
    path("remind/", people.remind, name="mails-remind"),
    path("schedule/", people.schedule, name="reminder-schedule"),
    path("schedule/<int:reminder>/cancel/", people.unschedule, name="reminder-cancel"),
    path("bounces/", people.bounces, name="bounces"),
    path("bounces/<int:moment>/undo/", people.bounces_undo, name="bounces-undo"),
    path("withdrawals/<int:line>/delete/", people.delete_rest, name="withdrawal-delete"),
    path("<int:person>/write-again/", people.write_again, name="write-again"),
    path("<int:person>/send/", people.send_link, name="link-send"),
    path("<int:person>/renew/", people.renew_link, name="link-renew"),
    path("<int:person>/remove/", people.remove, name="person-remove"),
]
_answers = [
    path("", answers.texts, name="texts"),
    path("handle/", answers.handle, name="texts-handle"),
    path("reopen/", answers.reopen, name="texts-reopen"),
    path("<int:text>/need/", answers.need, name="text-need"),
    path("people/", answers.people, name="answers-people"),
    path("people/<int:person>/", answers.person, name="answers-person"),
    path("people/<int:person>/files/<slug:key>/", answers.sent_file, name="answers-sent-file"),
    path("questions/", answers.by_question, name="answers-questions"),
    path("requests/", answers.requests, name="answers-requests"),
    path("people.<table:file_format>", answers.people_file, name="answers-file"),
    path("texts.<table:file_format>", answers.texts_file, name="texts-file"),
]
_clashes = [
    path("", clashes.clashes, name="clashes"),
    path("choose/", clashes.choose, name="clash-choose"),
    path("restore/", clashes.restore, name="clash-restore"),
    path("correct/", clashes.correct, name="clash-correct"),
]
_languages = [
    path("", languages.languages, name="languages"),
    path("file/", languages.read, name="languages-read"),
    path("file/<uuid:draft_uuid>/", languages.draft, name="languages-draft"),
    path("file/<uuid:draft_uuid>/use/", languages.draft_use, name="languages-draft-use"),
    path("file.csv", languages.file, name="languages-file"),
    path("own/", languages.own, name="languages-own"),
    path("add/", languages.add, name="languages-add"),
    path("<slug:language>/remove/", languages.remove, name="languages-remove"),
]
_one: list[URLPattern | URLResolver] = [
    path("", staff.questionnaire, name="questionnaire"),
    path("settings/", staff.settings_page, name="settings"),
    path("questions/", include(_questions)),
    path("sections/", include(_sections)),
    path("undo/", questions.undo, name="undo"),
    path("languages/", include(_languages)),
    path("open/", staff.open_, name="open"),
    path("close/", staff.close, name="close"),
    path("preview/", staff.preview, name="preview"),
    path("people/", include(_people)),
    path("answers/", include(_answers)),
    path("clashes/", include(_clashes)),
    path("cohort/", people.make_cohort, name="make-cohort"),
    path("cohort/join/", people.join_cohort, name="join-cohort"),
    path("delete/", staff.delete, name="delete"),
]
urlpatterns = [
    path("questionnaires/", staff.questionnaire_list, name="list"),
    path("questionnaires/new/", staff.new, name="new"),
    path("questionnaires/<uuid:uuid>/", include(_one)),
    path("q/", students.enter, name="enter"),
    path("q/code/<path:code>/", students.code, name="code"),
    path("q/mine/<str:handle>/", students.mine, name="mine"),
    path("q/stop/<str:token>/", students.stop, name="stop"),
    path("q/<str:token>/", students.answer, name="answer"),
]
