"""Copy the proposals of earlier versions to placements in pairs; their tables stay as they are."""

from collections import defaultdict

from django.core.management.color import no_style
from django.db import migrations

BATCH = 400
NEVER_TOGETHER = ("rejected", "never")
FIGURES = "score probability multiple doubt allowed doubt_share chips weak".split()
KINDS = {
    "accept": "reviewed", "reopen": "reviewed", "lock": "locked", "unlock": "locked",
    "swap": "moved", "reject": "parted", "never": "parted", "rule": "rules",
}  # fmt: skip


def copy_proposals(apps, schema_editor):
    """Copy every proposal that has no copy yet; each has the key of its proposal."""
    Proposal = apps.get_model("matching", "Proposal")
    Placement = apps.get_model("housing", "Placement")
    connection = schema_editor.connection
    keep_own_times(apps)
    event_keys = Keys(connection, apps, "PlacementEvent", "DecisionEvent")
    pair_keys = Keys(connection, apps, "PlacedPair", "ProposedPair")
    done = Placement.objects.filter(is_pairs=True).values("pk")
    for proposal in Proposal.objects.exclude(pk__in=done).order_by("created_at").iterator(50):
        Copy(apps, proposal, event_keys).write()
    rename_parameters(apps)
    for keys in (event_keys, pair_keys):
        keys.reserve()


def remove_copies(apps, schema_editor):
    """Remove the copies; the proposals are still there."""
    Placement = apps.get_model("housing", "Placement")
    apps.get_model("matching", "ForbiddenPair").objects.filter(proposal__isnull=False).update(
        placement=None
    )
    Placement.objects.filter(is_pairs=True).delete()
    apps.get_model("housing", "BuildingList").objects.filter(is_private=True).delete()


def keep_own_times(apps):
    """Let copies have the times of their originals, not the time of the copying."""
    for app, name in (
        ("housing", "Placement"), ("housing", "BuildingList"), ("housing", "PlacementVersion"),
        ("housing", "PlacementEvent"), ("housing", "PairLock"),
    ):  # fmt: skip
        apps.get_model(app, name)._meta.get_field("created_at").auto_now_add = False


def rename_parameters(apps):
    """Let jobs of proposals name the placement, which the page of a job links to."""
    Job = apps.get_model("jobs", "Job")
    changed = []
    for job in Job.objects.filter(kind="roommates.propose").only("parameters").iterator(BATCH):
        key = job.parameters.get("proposal")
        if key and "placement" not in job.parameters:
            job.parameters = {**job.parameters, "placement": key}
            changed.append(job)
        if len(changed) == BATCH:
            Job.objects.bulk_update(changed, ["parameters"])
            changed = []
    Job.objects.bulk_update(changed, ["parameters"])


class Keys:
    """Keys of copied rows: none is ever given that the old table gave to another row."""

    def __init__(self, connection, apps, new, old):
        self.connection = connection
        self.new, self.old = apps.get_model("housing", new), apps.get_model("matching", old)
        self.last = max(self._given(self.new), self._given(self.old))

    def next(self):
        self.last += 1
        return self.last

    def _given(self, model):
        """Return the largest key that a table ever gave."""
        table = model._meta.db_table
        newest = model.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        with self.connection.cursor() as cursor:
            if self.connection.vendor == "sqlite":
                cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
                row = cursor.fetchone()
            else:
                cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [f'"{table}"'])
                cursor.execute(f"SELECT last_value FROM {cursor.fetchone()[0]}")  # noqa: S608
                row = cursor.fetchone()
        return max(newest, row[0] if row and row[0] else 0)

    def reserve(self):
        """Let the new table go on behind all keys of both."""
        last = max(self.last, self._given(self.new))
        if not last:
            return
        table = self.new._meta.db_table
        with self.connection.cursor() as cursor:
            if self.connection.vendor == "sqlite":
                cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last, table])
                if not cursor.rowcount:
                    cursor.execute("INSERT INTO sqlite_sequence VALUES (%s, %s)", [table, last])
                return
            for statement in self.connection.ops.sequence_reset_sql(no_style(), [self.new]):
                cursor.execute(statement)
            cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [f'"{table}"'])
            cursor.execute("SELECT setval(%s, %s)", [cursor.fetchone()[0], last])


class Copy:
    """One proposal with everything that belongs to it, as a placement in pairs."""

    def __init__(self, apps, proposal, event_keys):
        self.apps, self.proposal, self.event_keys = apps, proposal, event_keys
        pairs = apps.get_model("matching", "ProposedPair").objects.filter(proposal=proposal)
        self.pairs = list(pairs.order_by("first_number").iterator(2_000))
        students = apps.get_model("cohorts", "Student").objects.filter(cohort=proposal.cohort_id)
        self.students = list(students.order_by("number").values_list("pk", "number"))
        self.rows, self.rooms = {}, {}

    def model(self, name):
        return self.apps.get_model("housing", name)

    def write(self):
        self.placement = self._placement()
        self._rooms()
        version = self._version() if self.proposal.revision else None
        if version is not None:
            self._places()
            self._pairs()
        self._rules()
        count = self._events()
        self.model("Placement").objects.filter(pk=self.placement.pk).update(
            current=version, version=1 + count
        )

    def _placement(self):
        old = self.proposal
        figures = {**old.figures}
        if figures.get("gap") is not None and figures.get("weight") is not None:
            relative = figures["gap"] / max(abs(figures["weight"]), 1e-9)
            figures["relative_gap"] = relative if relative > 1e-9 else 0.0
        owner = {
            "organisation_id": old.organisation_id,
            "created_by_id": old.created_by_id,
            "created_at": old.created_at,
        }
        buildings = self.model("BuildingList").objects.create(
            **owner, name=f"Pairs of {old.pk}", is_private=True, updated_at=old.updated_at
        )
        rules = {
            "designation": "", "same": list(old.same), "needs": [], "mutual": "no",
            "one_sided": "no", "wish": 0.2, "preference": 0.0, "price": 0.5,
            "singles": list(old.singles),
        }  # fmt: skip
        return self.model("Placement").objects.create(
            pk=old.pk, **owner, name=old.name, cohort_id=old.cohort_id, model_id=old.model_id,
            buildings=buildings, rules=rules, job_id=old.job_id, revision=old.revision,
            best_at=old.best_at, changes=old.changes, figures=figures, is_pairs=True,
            arrays=old.arrays, n_pairs=len(self.pairs), updated_at=old.updated_at,
            n_open=sum(pair.state == "open" for pair in self.pairs),
        )  # fmt: skip

    def _rooms(self):
        """Make the rooms of two, one for each pair at least."""
        Room = self.model("Room")
        wanted = max(len(self.pairs), (len(self.students) + 1) // 2) if self.proposal.revision else 0
        Room.objects.bulk_create(
            [
                Room(
                    buildings_id=self.placement.buildings_id, hall="Pair", name=str(k + 1),
                    capacity=2, position=k,
                )
                for k in range(wanted)
            ],
            batch_size=BATCH,
        )  # fmt: skip
        rooms = Room.objects.filter(buildings_id=self.placement.buildings_id).order_by("position")
        keys = list(rooms.values_list("pk", flat=True))
        for pair, room in zip(self.pairs, keys, strict=False):
            self.rooms[pair.pk] = room
            self.rows[pair.pk] = self._row(pair, room)

    def _row(self, pair, room):
        return {
            "pk": pair.pk,
            "room_id": room,
            "first_id": pair.first_id,
            "second_id": pair.second_id,
            "first_number": pair.first_number,
            "second_number": pair.second_number,
            **{name: getattr(pair, name) for name in FIGURES},
            "state": pair.state,
            "version": pair.version,
            "decided_by": pair.decided_by,
            "decided_at": pair.decided_at.isoformat() if pair.decided_at else None,
        }

    def _seats(self):
        """Return (room, bed, locked, doubt) of every student who shares a room, by key."""
        return {
            key: (row["room_id"], bed, row["state"] == "locked", row["doubt_share"])
            for row in self.rows.values()
            if row["state"] not in NEVER_TOGETHER
            for bed, key in ((1, row["first_id"]), (2, row["second_id"]))
        }

    def _version(self):
        """Store the pairs in force as the first version."""
        seats, nobody = self._seats(), (None, None, False, None)
        rows = []
        for key, _ in self.students:
            room, bed, is_locked, doubt = seats.get(key, nobody)
            rows.append([key, room, bed, is_locked, False, doubt])
        together = [row for row in self.rows.values() if row["state"] not in NEVER_TOGETHER]
        scores = [row["score"] for row in together]
        nothing = ("mutual", "one_sided", "first_choice", "any_choice", "needs")
        outcome = {
            "people": len(self.students), "placed": len(seats), "total": sum(scores),
            "mean": sum(scores) / len(scores) if scores else None,
            **{name: [0, 0] for name in nothing}, "low": None, "rooms_below": 0,
            "rooms_shared": len(together), "beds_free": 0, "moved": 0,
        }  # fmt: skip
        when = self.proposal.best_at or self.proposal.updated_at
        return self.model("PlacementVersion").objects.create(
            placement=self.placement, number=1, origin="run", job_id=self.proposal.job_id,
            created_by_id=self.proposal.created_by_id, created_at=when, used_at=when,
            rules=self.placement.rules, rows=rows, figures=self.placement.figures,
            outcome=outcome, best_at=self.proposal.best_at, changes=self.proposal.changes,
            arrays=self.proposal.arrays, pairs=list(self.rows.values()),
        )  # fmt: skip

    def _places(self):
        Place = self.model("Place")
        seats = self._seats()
        scores = {
            key: row["score"]
            for row in self.rows.values()
            for key in (row["first_id"], row["second_id"])
        }
        places = []
        for key, number in self.students:
            place = Place(placement=self.placement, student_id=key, number=number)
            if key in seats:
                place.room_id, place.bed, place.is_locked, place.doubt = seats[key]
                place.score = scores[key]
            places.append(place)
        Place.objects.bulk_create(places, batch_size=BATCH)

    def _pairs(self):
        PlacedPair, AcceptedRoom = self.model("PlacedPair"), self.model("AcceptedRoom")
        times = {pair.pk: pair.decided_at for pair in self.pairs}
        PlacedPair.objects.bulk_create(
            [
                PlacedPair(placement=self.placement, **{**row, "decided_at": times[row["pk"]]})
                for row in self.rows.values()
            ],
            batch_size=BATCH,
        )
        AcceptedRoom.objects.bulk_create(
            [
                AcceptedRoom(
                    placement=self.placement, room_id=row["room_id"], members=members_of(row)
                )
                for row in self.rows.values()
                if row["state"] == "accepted"
            ],
            batch_size=BATCH,
        )

    def _rules(self):
        """Copy locks of other pairs; let rejections belong to the placement as well."""
        PairLock = self.model("PairLock")
        LockRule = self.apps.get_model("matching", "LockRule")
        names = ("first_id", "second_id", "created_by", "created_at")
        PairLock.objects.bulk_create(
            [
                PairLock(placement=self.placement, **lock)
                for lock in LockRule.objects.filter(proposal=self.proposal).values(*names)
            ],
            batch_size=BATCH,
        )
        ForbiddenPair = self.apps.get_model("matching", "ForbiddenPair")
        ForbiddenPair.objects.filter(proposal=self.proposal).update(placement=self.placement)

    def _events(self):
        """Copy the decisions under new keys; return how many acts the history has."""
        DecisionEvent = self.apps.get_model("matching", "DecisionEvent")
        old = list(DecisionEvent.objects.filter(proposal=self.proposal).order_by("pk"))
        current = [one for one in old if one.revision == self.proposal.revision]
        before = [one for one in old if one.revision != self.proposal.revision]
        changes = self._changes(current)
        acts = [self._event(one, {}) for one in before]
        if self.proposal.revision:
            acts.append(self._paired())
            later = [self._event(one, changes.get(one.pk, {})) for one in current]
            acts += sorted(later + self._arrivals(), key=lambda act: act["created_at"])
        else:
            acts += [self._event(one, {}) for one in current]
        PlacementEvent = self.model("PlacementEvent")
        PlacementEvent.objects.bulk_create(
            [
                PlacementEvent(
                    pk=self.event_keys.next(), placement=self.placement, version=k + 2, **act
                )
                for k, act in enumerate(acts)
            ],
            batch_size=BATCH,
        )
        return len(acts)

    def _paired(self):
        count = len(self.pairs)
        return {
            "kind": "version",
            "user_id": self.proposal.created_by_id,
            "sentence": f"Version 1 paired: {count:,} {'pair' if count == 1 else 'pairs'}.",
            "before": [],
            "after": [],
            "created_at": self.proposal.best_at or self.proposal.updated_at,
        }

    def _arrivals(self):
        """Return the acts by which students joined after the pairs were computed."""
        LateArrivals = self.apps.get_model("cohorts", "LateArrivals")
        numbers = {number for _, number in self.students}
        acts = []
        since = self.proposal.best_at or self.proposal.updated_at
        for one in LateArrivals.objects.filter(
            cohort=self.proposal.cohort_id, created_at__gt=since
        ).order_by("pk"):
            own = sorted(n for n in numbers if one.first_number <= n <= one.last_number)
            if own:
                words = "student joined" if len(own) == 1 else "students joined"
                acts.append(
                    {
                        "kind": "arrived",
                        "user_id": None,
                        "sentence": f"{len(own):,} {words} without a roommate.",
                        "before": [],
                        "after": [[number, None, None, False, False] for number in own],
                        "details": {"arrival": one.pk},
                        "created_at": one.created_at,
                    }
                )
        return acts

    def _event(self, old, change):
        return {
            "kind": KINDS.get(old.decision, "reviewed"),
            "user_id": old.user_id,
            "sentence": old.sentence,
            "before": change.get("before", []),
            "after": change.get("after", []),
            "rooms": change.get("rooms", []),
            "details": change.get("details", {}),
            "created_at": old.created_at,
            "undone_at": old.undone_at,
        }

    def _changes(self, events):
        """Return what undo needs of each decision about the pairs in force, by its old key.

        The decisions are gone through backwards: the row after one is the row before the next. A
        decision whose pairs do not have the version that it gave them cannot be undone any more,
        as before.
        """
        rows, found = dict(self.rows), {}
        for event in reversed(events):
            if event.undone_at is not None:
                continue
            versions = {int(key): version for key, version in event.after["versions"].items()}
            keys = [row["pk"] for row in event.before["pairs"]]
            if any(key not in rows or rows[key]["version"] != versions.get(key) for key in keys):
                for key in keys:
                    rows.pop(key, None)
                continue
            old = [{**row, "room_id": self.rooms[row["pk"]]} for row in event.before["pairs"]]
            new = [rows[key] for key in keys]
            found[event.pk] = change_between(old, new) | {
                "details": {
                    "pairs": {"before": old, "versions": event.after["versions"]},
                    "rules": {
                        name: event.after[name]
                        for name in ("locks", "forbidden", "singles", "same")
                        if any(event.after.get(name, {}).values())
                    },
                    "unsettles": bool(event.before.get("changes")),
                }
            }
            rows.update({row["pk"]: row for row in old})
        return found


def members_of(row):
    return sorted((row["first_number"], row["second_number"]))


def change_between(old, new):
    """Return where the students of some pairs lived, and which rooms were accepted."""
    rooms = []
    for before, after in zip(old, new, strict=True):
        one, other = (
            ["open", members_of(row) if row["state"] == "accepted" else None]
            for row in (before, after)
        )
        if one != other:
            rooms.append([before["room_id"], one, other])
    return {"before": seats_of(old), "after": seats_of(new), "rooms": rooms}


def seats_of(rows):
    seats = defaultdict(list)
    for row in rows:
        is_together = row["state"] not in NEVER_TOGETHER
        for bed, number in ((1, row["first_number"]), (2, row["second_number"])):
            seats[number] = [
                number,
                row["room_id"] if is_together else None,
                bed if is_together else None,
                row["state"] == "locked",
                False,
            ]
    return [seats[number] for number in sorted(seats)]


class Migration(migrations.Migration):

    dependencies = [
        ("cohorts", "0009_identity_of_students"),
        ("jobs", "0012_memory_kills"),
        ("housing", "0008_pairs_as_placements"),
        ("matching", "0006_rules_of_placements"),
    ]

    operations = [
        migrations.RunPython(copy_proposals, remove_copies, elidable=True),
    ]
