"""Filters of the audit log's template."""

from django import template

from webapp.audit.details import details_sentence

register = template.Library()
register.filter("details_sentence", details_sentence)
