"""Many people decide about one pair in the same moment: one decision stands, all others know."""

import contextlib
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tests.live.product import Product

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]

TOKEN = "b" * 32

_PREPARE = """
import json
from django.test import Client
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import BuildingList, Place, PlacedPair, Placement, Room
from webapp.matching.models import LearnedModel
bob = User.objects.get(username="bob")
owned = {"organisation": bob.organisation, "created_by": bob}
cohort = Cohort.objects.create(name="At once", questions=[], n_students=2, **owned)
students = [
    Student.objects.create(cohort=cohort, number=1001 + k, original_id=str(k), answers=[])
    for k in range(2)
]
model = LearnedModel.objects.create(name="At once", **owned)
buildings = BuildingList.everything.create(name="At once", is_private=True, **owned)
room = Room.objects.create(buildings=buildings, hall="Pair", name="1", capacity=2)
placement = Placement.objects.create(
    name="At once", cohort=cohort, model=model, revision=1, buildings=buildings, is_pairs=True,
    **owned
)
for k, student in enumerate(students):
    Place.objects.create(
        placement=placement, student=student, number=1001 + k, room=room, bed=k + 1
    )
pair = PlacedPair.objects.create(
    placement=placement, room=room, first=students[0], second=students[1], first_number=1001,
    second_number=1002, score=0, probability=1, multiple=1, doubt=1, allowed=1, doubt_share=0,
)
sessions = []
for name in ("bob", "carol"):
    client = Client()
    client.force_login(
        User.objects.get(username=name), backend="django.contrib.auth.backends.ModelBackend"
    )
    sessions.append(client.cookies["sessionid"].value)
print(json.dumps({"placement": str(placement.pk), "pair": pair.pk, "sessions": sessions}))
"""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A decision answers with a redirect to the page, which this test does not need."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


def decide(product: Product, made: dict, session: str, decision: str) -> None:
    data = urllib.parse.urlencode(
        {"decision": decision, "pair": f"{made['pair']}:1", "csrfmiddlewaretoken": TOKEN}
    ).encode()
    request = urllib.request.Request(
        f"{product.url}/placements/{made['placement']}/pairs/decide/",
        data=data,
        headers={"Cookie": f"sessionid={session}; csrftoken={TOKEN}"},
    )
    opener = urllib.request.build_opener(_NoRedirect)
    with contextlib.suppress(urllib.error.HTTPError):
        opener.open(request, timeout=60)


def test_one_decision_stands_and_the_others_are_refused(product: Product) -> None:
    made = json.loads(product.run(_PREPARE))
    decisions = ("accept", "lock")
    threads = [
        threading.Thread(
            target=decide,
            args=(product, made, made["sessions"][k % 2], decisions[k % 2]),
        )
        for k in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=90)
    (pair,) = product.rows("SELECT state, version, decided_by FROM housing_placedpair")
    events = product.rows("SELECT kind FROM housing_placementevent")
    assert [event["kind"] for event in events] in (["reviewed"], ["locked"])
    assert pair["version"] == 2
    expected = {"accepted": "bob", "locked": "carol"}
    assert pair["decided_by"] == expected[pair["state"]]
