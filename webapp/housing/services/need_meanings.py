"""Which rooms meet a need that has other words than the rooms; asked once for an organisation."""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.housing.errors import HousingError
from webapp.housing.models import NeedMeaning, Room
from webapp.housing.models.need import MAX_NEED

MAX_MEANINGS = 500  # of one organisation


@transaction.atomic
def need_meaning_set(*, user: User, need: str, offers: Sequence[str]) -> int:
    """Keep that rooms with one of the offers meet a need; return how many rooms then do.

    Without offers no room meets the need by another name.
    """
    need = " ".join(need.split())
    if not need or len(need) > MAX_NEED:
        raise HousingError(_("There is no such need any more. Nothing was changed."))
    own = NeedMeaning.objects.filter(organisation=user.own_organisation)
    if own.exclude(key=need.casefold()).count() >= MAX_MEANINGS:
        raise HousingError(
            _("An organisation keeps at most %(max_meanings)s meanings of needs.")
            % {"max_meanings": MAX_MEANINGS}
        )
    kept = list(dict.fromkeys(offer for offer in offers if offer.casefold() != need.casefold()))
    meaning, _rest = NeedMeaning.objects.update_or_create(
        organisation=user.own_organisation,
        key=need.casefold(),
        defaults={"offers": kept, "updated_at": timezone.now()},
        create_defaults={"need": need, "offers": kept, "created_by": user},
    )
    rooms = Room.objects.filter(buildings__organisation=user.own_organisation)
    meanings_apply(rooms, own)
    audit(user, "said which rooms meet a need", meaning, offers=kept)
    return sum(need.casefold() in room.met_needs for room in rooms.all())


@transaction.atomic
def need_meaning_remove(*, user: User, meaning: NeedMeaning) -> None:
    """Remove a meaning, so that the question is asked again."""
    audit(user, "removed the meaning of a need", meaning)
    organisation = meaning.organisation_id
    meaning.delete()
    rooms = Room.objects.filter(buildings__organisation=organisation)
    meanings_apply(rooms, NeedMeaning.objects.filter(organisation=organisation))


def meanings_apply(rooms: Iterable[Room], meanings: Iterable[NeedMeaning]) -> None:
    """Write which needs rooms meet by another name; call it when rooms or meanings change."""
    known = [(one.need, {offer.casefold() for offer in one.offers}) for one in meanings]
    changed = []
    for room in rooms:
        offered = {offer.casefold() for offer in room.meets}
        also = [need for need, offers in known if offered & offers]
        if also != room.also_meets:
            room.also_meets = also
            changed.append(room)
    Room.objects.bulk_update(changed, ["also_meets"], batch_size=500)
