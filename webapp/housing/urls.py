"""URL patterns of buildings, requests and placements."""

from django.urls import include, path

from webapp.housing.views import (
    buildings,
    changes,
    decisions,
    history,
    needs,
    pair_decisions,
    pairs,
    placements,
    requests,
    terms,
)
from webapp.housing.views.moved import moved_to

app_name = "housing"

_changes = [
    path("withdraw/", changes.withdraw, name="changes-withdraw"),
    path("return/", changes.bring_back, name="changes-return"),
    path("give/", changes.give, name="changes-give"),
    path("keep/", changes.keep, name="changes-keep"),
    path("first/", changes.first, name="changes-first"),
    path("last/", changes.last, name="changes-last"),
    path("propose/", changes.propose, name="changes-propose"),
    path("choose/", changes.choose, name="changes-choose"),
    path("discard/", changes.discard, name="changes-discard"),
    path("act/", changes.act, name="changes-act"),
]
_pairs = [
    path("decide/", pair_decisions.decide, name="pairs-decide"),
    path("rule/", pair_decisions.rule, name="pairs-rule"),
    path("swap/", pair_decisions.swap, name="pairs-swap"),
    path("<int:pair_id>/", pair_decisions.pair, name="pair"),
    path("<int:pair_id>/ids/", pair_decisions.originals, name="pair-originals"),
]
_requests = [
    path("import/<slug:kind>/", requests.import_file, name="requests-import"),
    path("<int:request_id>/settle/", requests.settle, name="request-settle"),
    path("<int:request_id>/leave-out/", requests.leave_one_out, name="request-leave-out"),
    path("match/", requests.match, name="requests-match"),
    path("leave-out/", requests.leave_out, name="requests-leave-out"),
    path("split/", requests.split, name="requests-split"),
    path("circles/", requests.circles, name="requests-circles"),
    path("impossible/", requests.impossible, name="requests-impossible"),
    path("cut/", requests.cut, name="requests-cut"),
    path("keep/", requests.keep, name="requests-keep"),
    path("themselves/", requests.themselves, name="requests-themselves"),
    path("clear/", requests.clear, name="requests-clear"),
    path("count/", requests.count, name="requests-count"),
    path("try/", requests.try_count, name="requests-try"),
    path("change/", requests.change, name="requests-change"),
]
_PROPOSAL = "proposals/<uuid:uuid>/"
_moved = [
    path(old, moved_to(new), name=f"{new}-moved")
    for old, new in (
        ("proposals/", "placements"),
        ("proposals/new/", "placement-new"),
        (_PROPOSAL, "placement"),
        (f"{_PROPOSAL}look/", "pair-numbers"),
        (f"{_PROPOSAL}propose/", "placement-compute"),
        (f"{_PROPOSAL}rename/", "placement-rename"),
        (f"{_PROPOSAL}delete/", "placement-delete"),
        (f"{_PROPOSAL}export.<table:file_format>", "pairs-export"),
        (f"{_PROPOSAL}decide/", "pairs-decide"),
        (f"{_PROPOSAL}rule/", "pairs-rule"),
        (f"{_PROPOSAL}swap/", "pairs-swap"),
        (f"{_PROPOSAL}undo/<int:event_id>/", "placement-undo"),
        (f"{_PROPOSAL}pairs/<int:pair_id>/", "pair"),
        (f"{_PROPOSAL}pairs/<int:pair_id>/ids/", "pair-originals"),
    )
]
urlpatterns = [
    *_moved,
    path("buildings/", buildings.building_lists, name="building-lists"),
    path("buildings/new/", buildings.upload, name="buildings-upload"),
    path("buildings/drafts/<uuid:uuid>/", buildings.draft, name="building-draft"),
    path(
        "buildings/drafts/<uuid:uuid>/import/",
        buildings.draft_confirm,
        name="building-draft-confirm",
    ),
    path(
        "buildings/drafts/<uuid:uuid>/discard/",
        buildings.draft_discard,
        name="building-draft-discard",
    ),
    path("buildings/drafts/<uuid:uuid>/move/", buildings.draft_moved, name="building-draft-move"),
    path("buildings/<uuid:uuid>/", buildings.buildings, name="buildings"),
    path("buildings/<uuid:uuid>/rename/", buildings.rename, name="buildings-rename"),
    path("buildings/<uuid:uuid>/state/", buildings.state, name="buildings-state"),
    path("buildings/<uuid:uuid>/remove/", buildings.remove, name="buildings-remove"),
    path("buildings/<uuid:uuid>/rooms/<int:room_id>/", buildings.room, name="room"),
    path(
        "buildings/<uuid:uuid>/rooms/<int:room_id>/remove/",
        buildings.remove_room,
        name="room-remove",
    ),
    path("cohorts/<uuid:uuid>/requests/", requests.requests, name="requests"),
    path("cohorts/<uuid:uuid>/requests/", include(_requests)),
    path("cohorts/<uuid:uuid>/wish-effects/", requests.wish_effects, name="wish-effects"),
    path("cohorts/<uuid:uuid>/needs/", needs.needs, name="needs"),
    path("cohorts/<uuid:uuid>/needs/<int:meaning_id>/ask/", needs.ask_again, name="need-ask"),
    path("cohorts/<uuid:uuid>/scenarios/", placements.scenarios, name="scenarios"),
    path(
        "cohorts/<uuid:uuid>/scenarios.<table:file_format>",
        placements.scenarios_file,
        name="scenarios-file",
    ),
    path("placements/", placements.placement_list, name="placements"),
    path("placements/new/", placements.placement_new, name="placement-new"),
    path("placements/<uuid:uuid>/", placements.placement, name="placement"),
    path("placements/<uuid:uuid>/numbers/", pairs.numbers, name="pair-numbers"),
    path("placements/<uuid:uuid>/pairs.<table:file_format>", pairs.export, name="pairs-export"),
    path("placements/<uuid:uuid>/pairs/", include(_pairs)),
    path("placements/<uuid:uuid>/rules/", placements.rules, name="placement-rules"),
    path("placements/<uuid:uuid>/rules/try/", placements.try_rules, name="placement-try"),
    path("placements/<uuid:uuid>/compute/", placements.compute, name="placement-compute"),
    path(
        "placements/<uuid:uuid>/count-needs/",
        placements.count_needs,
        name="placement-count-needs",
    ),
    path("placements/<uuid:uuid>/relearn/", placements.relearn, name="placement-relearn"),
    path("placements/<uuid:uuid>/solve/", placements.solve, name="placement-solve"),
    path("placements/<uuid:uuid>/publish/", placements.publish, name="placement-publish"),
    path("placements/<uuid:uuid>/decide/", decisions.decide, name="placement-decide"),
    path("placements/<uuid:uuid>/choose/", decisions.choose, name="placement-choose"),
    path("placements/<uuid:uuid>/undo/<int:event_id>/", decisions.undo, name="placement-undo"),
    path("placements/<uuid:uuid>/history/", history.history, name="history"),
    path("placements/<uuid:uuid>/versions/<int:number>/", history.version, name="version"),
    path(
        "placements/<uuid:uuid>/versions/<int:number>/use/",
        history.use_version,
        name="version-use",
    ),
    path(
        "placements/<uuid:uuid>/versions/<int:number>/discard/",
        history.discard_version,
        name="version-discard",
    ),
    path("placements/<uuid:uuid>/drafts/<int:draft_id>/", changes.draft, name="draft"),
    path("placements/<uuid:uuid>/changes/", changes.changes, name="changes"),
    path("placements/<uuid:uuid>/changes/", include(_changes)),
    path(
        "placements/<uuid:uuid>/changes/moves.<table:file_format>",
        changes.moves_file,
        name="changes-moves",
    ),
    path("placements/<uuid:uuid>/rename/", placements.rename, name="placement-rename"),
    path("placements/<uuid:uuid>/term/", terms.choose, name="placement-term"),
    path("terms/", terms.terms, name="terms"),
    path("terms/<int:term_id>/", terms.term, name="term"),
    path("terms/<int:term_id>/remove/", terms.remove, name="term-remove"),
    path("placements/<uuid:uuid>/delete/", placements.delete, name="placement-delete"),
    path(
        "placements/<uuid:uuid>/export.<table:file_format>",
        placements.export,
        name="placement-export",
    ),
]
