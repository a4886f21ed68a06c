"""The files of deploy/ are understood by the tool that reads them, and start what they name."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from webapp.accounts.models import Organisation
from webapp.instance import BASE_DIR
from webapp.sizing import Sizes
from webapp.supervisor import roles

UNITS = sorted((BASE_DIR / "deploy" / "systemd").glob("*.service"))
SIZE = Sizes(
    web_workers=3,
    web_threads=5,
    job_workers=4,
    learn_workers=2,
    card_workers=1,
    job_threads=6,
    learn_nice=10,
)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze, which is absent")
    # The program must exist where a unit names it: here it is this one.
    text = unit.read_text(encoding="utf-8")
    text = text.replace("/opt/bethe-hall/.venv/bin/python", sys.executable)
    text = re.sub(r"^(User|Group)=.*$", r"\1=root", text, flags=re.MULTILINE)
    copy = tmp_path / unit.name
    copy.write_text(text.replace("file:///opt/bethe-hall", f"file://{BASE_DIR}"), encoding="utf-8")
    done = subprocess.run(
        [program, "verify", "--man=no", "--recursive-errors=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert unit.name not in done.stderr, done.stderr


def test_each_unit_starts_its_role() -> None:
    named = {
        re.search(r"webapp\.supervisor\.roles ([\w-]+)", path.read_text(encoding="utf-8"))[1]
        for path in UNITS
    }
    assert named == set(roles.ROLES)


def test_sizes_reach_the_programs() -> None:
    web = " ".join(roles.web_command("127.0.0.1:8000", SIZE))
    assert "--workers 3 --threads 5" in web
    assert "--queues long" in " ".join(roles.worker_command("long", 2))
    assert "--concurrency 2" in " ".join(roles.worker_command("long", 2))
    assert roles.own_environment(SIZE)["NUMBA_NUM_THREADS"] == "6"


def test_each_role_runs_the_jobs_of_its_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETHE_HALL_INSTANCE", str(tmp_path))
    monkeypatch.setenv("CARD_WORKERS", "3")
    monkeypatch.setattr(roles, "make_new_files_private", lambda: None)
    monkeypatch.setattr(os, "chdir", lambda path: None)
    for role, queue in (("worker", "short"), ("learner", "long"), ("card-learner", "card")):
        started: list[tuple[str, ...]] = []
        given: list[dict[str, str]] = []

        def start(
            path: str,
            command: tuple[str, ...],
            environment: dict[str, str],
            *,
            started: list[tuple[str, ...]] = started,
            given: list[dict[str, str]] = given,
        ) -> None:
            started.append(command)
            given.append(environment)

        monkeypatch.setattr(os, "execve", start)
        monkeypatch.setattr(sys, "argv", ["roles", role])
        roles.main()
        words = " ".join(started[0])
        assert f"--queues {queue} --hostname {queue}-" in words
        assert ("--concurrency 3" in words) == (role == "card-learner")
        assert int(given[0]["WORKER_NICE"]) >= 0


def test_the_sweep_runs_alone_and_stops_when_asked(tmp_path: Path) -> None:
    environment = {
        **{k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL"}},
        "BETHE_HALL_INSTANCE": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
    }
    log = tmp_path / "sweep.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "webapp.supervisor.roles", "sweep"],
            cwd=BASE_DIR,
            env=environment,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and b"sweep failed" not in log.read_bytes():
            time.sleep(0.1)
        # There are no tables yet: it says so and goes on.
        assert b"sweep failed, it will be tried again" in log.read_bytes()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def run_tool(name: str, *arguments: str, **environment: str) -> str:
    """Run the tool that reads a file of deploy/; return what it said. Skips where it is absent."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if program is None:
        pytest.skip(f"needs {name}, which is absent")
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_caddy_understands_its_file(tmp_path: Path) -> None:
    path = BASE_DIR / "deploy" / "proxy" / "Caddyfile"
    said = run_tool(
        "caddy", "validate", "--adapter", "caddyfile", "--config", str(path), HOME=str(tmp_path)
    )
    assert "Valid configuration" in said
    assert "not formatted" not in said


def nginx_files(folder: Path, *, web: int = 8000, http: int = 8080, https: int = 8443) -> Path:
    """Write nginx's configuration with our site, which logs into the folder; return its path."""
    run_tool(
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=hall.example",
        "-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem"),
    )  # fmt: skip
    text = (BASE_DIR / "deploy" / "proxy" / "nginx.conf").read_text(encoding="utf-8")
    for ours, here in (
        ("/etc/ssl/bethe-hall", str(folder)),
        ("/var/log/nginx", str(folder)),
        ("127.0.0.1:8000", f"127.0.0.1:{web}"),
        ("listen 80;", f"listen 127.0.0.1:{http};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{https} ssl;"),
    ):
        assert ours in text
        text = text.replace(ours, here)
    site = folder / "site.conf"
    site.write_text(text, encoding="utf-8")
    whole = folder / "nginx.conf"
    whole.write_text(
        f"pid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\ndaemon off;\n"
        f"http {{ access_log off; include {site}; }}\n",
        encoding="utf-8",
    )
    return whole


def test_nginx_understands_its_file(tmp_path: Path) -> None:
    whole = nginx_files(tmp_path)
    assert "test is successful" in run_tool("nginx", "-t", "-p", str(tmp_path), "-c", str(whole))


def test_prometheus_understands_the_alarms() -> None:
    path = BASE_DIR / "deploy" / "prometheus" / "alerts.yml"
    assert "SUCCESS" in run_tool("promtool", "check", "rules", str(path))


@pytest.mark.django_db
def test_every_alarm_is_of_a_number_that_there_is_and_is_explained() -> None:
    from webapp.common.models import Installation
    from webapp.jobs.models import Job, JobState, Worker
    from webapp.monitoring import metrics

    metrics.count_request("common:home", 200, 0.1)
    Installation.objects.create(pk=1, store_mark="x", backed_up_at=timezone.now())
    organisation = Organisation.objects.create(name="Northfield")
    Job.objects.create(
        organisation=organisation, kind="x", title="x", seed=1, state=JobState.RUNNING,
        heartbeat_at=timezone.now(),
    )  # fmt: skip
    Worker.objects.create(name="card-1@lab", processes=1, seen_at=timezone.now())
    text = metrics.exposition().decode()
    alarms = (BASE_DIR / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    manual = (BASE_DIR / "docs" / "operating.md").read_text(encoding="utf-8")
    named = set(re.findall(r"bethe_hall_\w+", alarms))
    assert named
    for name in named:
        assert re.search(rf"^{name}(\{{| )", text, re.MULTILINE), name
        assert f"`{name}" in manual, name
    done = subprocess.run(
        [shutil.which("promtool") or pytest.skip("needs promtool, which is absent"),
         "check", "metrics"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_containers_play_every_role_and_name_variables_that_are_read() -> None:
    folder = BASE_DIR / "deploy" / "compose"
    described = yaml.safe_load((folder / "compose.yaml").read_text(encoding="utf-8"))
    services = described["services"]
    roles_named = {service["command"][0] for service in services.values() if "build" in service
                   and "command" in service}  # fmt: skip
    assert roles_named | {"web"} == set(roles.ROLES)
    settings = (BASE_DIR / "webapp" / "settings.py").read_text(encoding="utf-8")
    for name in services["web"]["environment"]:
        assert name in settings or name.startswith("AWS_"), name
    for service in services.values():
        for volume in service.get("volumes", []):
            name = volume.split(":")[0]
            assert name in described["volumes"] or (folder / name).exists(), volume
    card = services["card-learner"]
    (device,) = card["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
    assert card["profiles"] == ["card"]  # off unless it is asked for
    assert card["image"] != services["learner"]["image"]  # which has no libraries of a card
    docker_file = (folder / "Dockerfile").read_text(encoding="utf-8")
    assert "webapp.supervisor.roles" in docker_file


@pytest.mark.parametrize(
    ("role", "nice"), [("worker", 10), ("learner", 10), ("card-learner", 10), ("spread", 10)]
)
def test_units_and_containers_give_way_as_far_as_nice_values(role: str, nice: int) -> None:
    """Short work had the weight of the web server wherever ``bin/start`` does not run."""
    share = 1.25**-nice  # of the weight of a program with nice 0: Linux's scale
    unit = (BASE_DIR / "deploy" / "systemd" / f"bethe-hall-{role}.service").read_text("utf-8")
    (weight,) = re.findall(r"^CPUWeight=(\d+)$", unit, re.MULTILINE)
    described = yaml.safe_load(
        (BASE_DIR / "deploy" / "compose" / "compose.yaml").read_text("utf-8")
    )
    assert int(weight) == pytest.approx(100 * share, rel=0.05)
    assert described["services"][role]["cpu_shares"] == pytest.approx(1024 * share, rel=0.05)


def test_the_manual_names_every_variable_that_is_read() -> None:
    manual = (BASE_DIR / "docs" / "operating.md").read_text(encoding="utf-8")
    files = [*(BASE_DIR / "webapp" / "supervisor").glob("*.py")]
    files += [BASE_DIR / "webapp" / name for name in ("settings.py", "sizing.py", "instance.py")]
    read = "".join(path.read_text(encoding="utf-8") for path in files)
    reads = r"environ\.get\(|environ\[|_override\(|\b(?:text|flag|listed|number|whole_number)\("
    names = re.findall(rf'(?:{reads})\s*"([A-Z_]+)"', read)
    ours = set(names) - {"PYTHONPATH"}
    assert len(ours) > 30
    assert not sorted(name for name in ours if f"`{name}`" not in manual)
