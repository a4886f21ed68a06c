"""Remove personal links from mails that an earlier version stored as they were sent.

A mail now stores the field [link], which is filled in when the mail is sent. A mail that still
waits, or is sent again, gets a new link.
"""

import re

from django.db import migrations
from django.db.models import Q

_LINK = re.compile(r"(https?://[^\s/]+)/q/[^\s/<>\"]+/?")


def take_out(apps, schema_editor):
    rows = apps.get_model("surveys", "Mail").objects.using(schema_editor.connection.alias)
    holding = Q(text__contains="/q/") | Q(subject__contains="/q/")
    for mail in rows.filter(holding).only("text", "subject", "base").iterator(500):
        found = _LINK.search(mail.text)
        if found and not mail.base:
            mail.base = found[1][:200]
        mail.text = _LINK.sub("[link]", mail.text)
        mail.subject = _LINK.sub("[link]", mail.subject)[:200]
        mail.save(update_fields=["text", "subject", "base"])


class Migration(migrations.Migration):
    dependencies = [("surveys", "0006_set_aside")]

    operations = [migrations.RunPython(take_out, migrations.RunPython.noop)]
