"""Models learned from past pairs. A file holds the weights, the row what pages show of them."""

import uuid
from pathlib import Path

from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.common.models import OrganisationOwned
from webapp.files.storage import array_path

# None: checked by a version that did not record it.
_KINDS_OF_PAIRS = {
    True: _("simulated pairs"),
    False: _("real pairs"),
    None: _("pairs of unknown origin"),
}


class LearnedModel(OrganisationOwned):
    """A model learned in one run from one or more cohorts with pairs.

    The row is created when the job is queued; ``learned_at`` is set in the transaction in which the
    job succeeds. ``sources`` stores names and counts of the cohorts, which can be purged.
    ``findings`` has the numbers of the check, ``curves`` the data of its charts. ``stop_asked_at``
    is the time at which somebody asked learning to stop and keep the weights so far.
    """

    HEAVY = ("questions", "weights", "curves")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    cohorts = models.ManyToManyField("cohorts.Cohort", related_name="models_learned")
    job = models.OneToOneField(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="learned_model"
    )
    sources = models.JSONField(default=list)
    questions = models.JSONField(default=list)
    options = models.JSONField(default=dict)
    is_simulated = models.BooleanField(default=False)
    learned_at = models.DateTimeField(null=True)
    figures = models.JSONField(default=dict)
    weights = models.JSONField(default=list)
    checked_on = models.ForeignKey(
        "cohorts.Cohort", null=True, on_delete=models.SET_NULL, related_name="checks"
    )
    checked_name = models.CharField(max_length=120, blank=True)
    check_job = models.OneToOneField(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="checked_model"
    )
    intervals_job = models.OneToOneField(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="model_with_intervals"
    )
    stop_asked_at = models.DateTimeField(null=True)
    findings = models.JSONField(default=dict)
    curves = models.JSONField(default=dict)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        """Path of the file of weights."""
        return array_path(self.organisation_id, "models", self.uuid)

    @property
    def is_learned(self) -> bool:
        """Return True if the model has weights to propose with."""
        return self.learned_at is not None

    @property
    def is_set_by_hand(self) -> bool:
        """Return True if staff set the weights, so that nothing was learned or certified."""
        return "importance" in self.options

    @property
    def is_checked(self) -> bool:
        """Return True if the model was compared with pairs that it was not trained on."""
        return bool(self.findings)

    @property
    def checked_pairs(self) -> str:
        """Pairs of the check, as of that time: "simulated pairs of Returning 2025"."""
        kind = _KINDS_OF_PAIRS[self.findings.get("is_simulated")]
        return gettext("%(kind)s of %(cohort)s") % {"kind": kind, "cohort": self.checked_name}

    @property
    def n_students(self) -> int:
        """Number of students in all cohorts that the model was trained on."""
        return sum(source["students"] for source in self.sources)

    @property
    def n_pairs(self) -> int:
        """Number of pairs in all cohorts that the model was trained on."""
        return sum(source["pairs"] for source in self.sources)
