"""Preparation of the web server before its processes are forked."""

from django.template import engines

from webapp.supervisor.web_hooks import compile_templates


def test_no_visitor_waits_for_a_template_to_be_compiled() -> None:
    for loader in engines["django"].engine.template_loaders:
        loader.reset()
    compile_templates()
    (cached,) = engines["django"].engine.template_loaders
    assert {"base.html", "housing/placement.html"} <= {
        str(template.name) for template in cached.get_template_cache.values()
    }
    known = engines["jinja2"].env.cache
    assert any("_pair_rows.jinja" in name for _, name in known.keys())  # noqa: SIM118
