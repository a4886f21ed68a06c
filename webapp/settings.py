"""Settings of the product. Environment variables set what differs between installations:

DEBUG, SECRET_KEY, ALLOWED_HOSTS, CSRF_TRUSTED_ORIGINS, DATABASE_URL, REDIS_URL,
BETHE_HALL_INSTANCE, MEDIA_ROOT, STORE_URL, STORE_CACHE_GB, SECURE_COOKIES,
TLS_REDIRECT_ELSEWHERE, TRUST_PROXY, TIME_ZONE, LOG_LEVEL, STAFF_LANGUAGE, TRANSLATIONS,
ORGANISATION_QUOTA_GB, ORGANISATION_MAX_WAITING_JOBS, ORGANISATION_MAX_RUNNING_JOBS, PIECE_IMAGES,
DASK_SCHEDULER, SPREAD_PIXELS, API_CALLS_A_MINUTE, JOB_MEMORY_GB,
API_WRONG_TOKENS_A_MINUTE, TRUSTED_PROXIES, HSTS_SECONDS, HSTS_SUBDOMAINS, HSTS_PRELOAD,
OPERATOR_ADMIN, METRICS_TOKEN, MIN_FREE_GB, BACKUP_FOLDER, BACKUPS_KEPT, LINES_LOG,
LINES_LOG_MEGABYTES, EMAIL_URL, EMAIL_FROM, BOUNCES_URL, PUBLIC_URL, SIGN_IN_PRIVATE_HOSTS,
SIGN_IN_FAILURES_OF_ADDRESS, SIGN_IN_FAILURES_OF_ALL, ENCRYPTION_KEYS, WEBHOOK_NETWORKS. Each is
explained where it is read.
Numbers of processes: ``webapp/sizing.py``.
"""

import warnings
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import dj_database_url
from csp.constants import NONE, SELF
from django.utils.functional import SimpleLazyObject
from django.utils.translation import to_locale

from webapp.common.client_address import read_networks
from webapp.environment import flag, listed, number, refused, text, whole_number
from webapp.instance import BASE_DIR, instance_path, read_or_create_secret
from webapp.monitoring.log_settings import logging_settings
from webapp.private_files import make_new_files_private

make_new_files_private()
INSTANCE_DIR = instance_path()

DEBUG = flag("DEBUG")
# The installation's own key is made at its first use, not when this file is imported.
SECRET_KEY: Any = text("SECRET_KEY") or SimpleLazyObject(read_or_create_secret)
# Comma-separated host names of the server; the supervisor asks for them where others reach it.
ALLOWED_HOSTS = listed("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
# Comma-separated origins, besides the own host, that may send forms, such as https://hall.example:
# needed behind an untrusted proxy that ends TLS (TRUST_PROXY), since requests then look like http.
CSRF_TRUSTED_ORIGINS = listed("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "webapp.common",
    "webapp.translation",
    "webapp.accounts",
    "webapp.identity",
    "webapp.audit",
    "webapp.files",
    "webapp.jobs",
    "webapp.operations",
    "webapp.cohorts",
    "webapp.matching",
    "webapp.housing",
    "webapp.segmentation",
    "webapp.surveys",
    "webapp.residents",
    "webapp.waiting",
    "webapp.room_choice",
    "webapp.reports",
    "webapp.letters",
    "webapp.students",
    "webapp.webhooks",
    "webapp.api",
    "webapp.demonstration",
    "django.contrib.admin.apps.SimpleAdminConfig",  # see OPERATOR_ADMIN
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.forms",  # the templates of form widgets, for our form renderer
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.socialaccount.providers.saml",
    "allauth.mfa",
    "axes",
    "csp",
]

MIDDLEWARE = [
    "webapp.common.client_address.ClientAddressMiddleware",  # first: others read the address
    "webapp.monitoring.request_lines.RequestLineMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "webapp.common.middleware.BrowserPolicyMiddleware",
    "webapp.common.middleware.FragmentRedirectMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.accounts.middleware.SignInMiddleware",
    "webapp.common.middleware.ZeroByteMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.accounts.middleware.TimeZoneMiddleware",
    "webapp.accounts.middleware.PasswordChangeMiddleware",
    "webapp.identity.middleware.SecondFactorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "webapp.common.middleware.ToastMiddleware",
    "webapp.jobs.doubles.DoublesMiddleware",
    "axes.middleware.AxesMiddleware",
    "webapp.common.head_requests.HeadMiddleware",  # last: it calls the view
]

ROOT_URLCONF = "webapp.urls"
WSGI_APPLICATION = "webapp.wsgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.common.context_processors.interface",
                "webapp.students.context_processors.names",
            ],
            "builtins": [
                "webapp.common.templatetags.interface",
                "webapp.cohorts.templatetags.student_names",
            ],
        },
    },
    {
        # For rows of long tables: compiled, and about 10 times faster.
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {"environment": "webapp.common.jinja.environment"},
    },
]
FORM_RENDERER = "webapp.common.forms.InterfaceFormRenderer"

# -- Store --------------------------------------------------------------------------------------

_SQLITE_URL = f"sqlite:///{INSTANCE_DIR / 'bethe_hall.sqlite3'}"
DATABASES = {
    "default": dj_database_url.parse(
        text("DATABASE_URL") or _SQLITE_URL, conn_max_age=60, conn_health_checks=True
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["ENGINE"] = "webapp.database.sqlite3"
    # Parallel tests give each process an in-memory database of this name; a custom engine would
    # create files.
    DATABASES["default"]["TEST"] = {"NAME": ":memory:"}
    DATABASES["default"]["OPTIONS"] = {
        # IMMEDIATE takes the write lock at BEGIN: a transaction waits instead of failing half-way.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Where files are stored: a folder of this host, a folder shared by all hosts, or s3://BUCKET/PREFIX
# with ?endpoint= and &region=. For s3, MEDIA_ROOT holds local copies, at most STORE_CACHE_GB.
# Files are never served by path: views check rights and stream.
MEDIA_ROOT = Path(text("MEDIA_ROOT") or INSTANCE_DIR / "media")
STORE_URL = text("STORE_URL")
STORE_CACHE_GB = number("STORE_CACHE_GB", 20)
# Total size of one organisation's files in GB, so that none fills the disk for all.
ORGANISATION_QUOTA_GB = number("ORGANISATION_QUOTA_GB", 50)
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000  # the preview of a wide survey posts one role per column
DATA_UPLOAD_MAX_NUMBER_FILES = 1_000
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024

STATIC_URL = "/static/"
STATIC_ROOT = INSTANCE_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "webapp.common.static_storage.ForgivingManifestStorage"
    },
}

# -- People -------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "webapp.accounts.passwords.GuessablePasswordValidator"},
]
LOGIN_URL = "accounts:sign-in"
LOGIN_REDIRECT_URL = "common:home"
LOGOUT_REDIRECT_URL = "accounts:sign-in"
SESSION_ENGINE = "webapp.common.sessions"
SESSION_COOKIE_AGE = 12 * 3600  # a working day
SESSION_SAVE_EVERY_REQUEST = False
# Maximum failed sign-ins in ten minutes over all names: from one address, and in total. Beyond it,
# browsers in which nobody has signed in before have to wait.
SIGN_IN_FAILURES_OF_ADDRESS = whole_number("SIGN_IN_FAILURES_OF_ADDRESS", 30)
SIGN_IN_FAILURES_OF_ALL = whole_number("SIGN_IN_FAILURES_OF_ALL", 500)
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_USERNAME_CALLABLE = "webapp.accounts.guesses.locked_name"
AXES_LOCKOUT_CALLABLE = "webapp.accounts.views.locked_out"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# Providers are rows of organisations (webapp/identity); allauth speaks their protocols.
ACCOUNT_ADAPTER = "webapp.identity.adapters.AccountAdapter"
SOCIALACCOUNT_ADAPTER = "webapp.identity.adapters.SocialAdapter"
MFA_ADAPTER = "webapp.identity.adapters.MFAAdapter"
ACCOUNT_EMAIL_VERIFICATION = SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = False
# With a form posting to us, the redirect to a provider would break our form-action policy.
SOCIALACCOUNT_LOGIN_ON_GET = True
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
# Comma-separated hosts of providers that may be called although they are in a private network
# or use http: organisations' administrators type the addresses, and this server can reach more.
SIGN_IN_PRIVATE_HOSTS = listed("SIGN_IN_PRIVATE_HOSTS")
# Comma-separated Fernet keys that encrypt answers and the secrets of providers and of second
# factors. The first key encrypts, all decrypt. See webapp/encryption/fields.py.
ENCRYPTION_KEYS = listed("ENCRYPTION_KEYS")

# -- Browser policy -----------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
# Behind TLS these cookies travel over https only. `bin/start` serves plain http, over which the
# browser would not return them: it sets SECURE_COOKIES=0 unless the caller has set it, and warns if
# it listens beyond the loopback address.
SECURE_COOKIES = flag("SECURE_COOKIES", not DEBUG)
SESSION_COOKIE_SECURE = SECURE_COOKIES
CSRF_COOKIE_SECURE = SECURE_COOKIES
# An untrusted proxy that ends TLS has to redirect by itself: every request looks like http here.
SECURE_SSL_REDIRECT = SECURE_COOKIES and not flag("TLS_REDIRECT_ELSEWHERE")
# Seconds for which a browser uses https only for this host name. The default is one day, since a
# browser cannot be made to forget it: raise it once TLS has worked for a while. Subdomains and
# browsers' preload lists are for the owner of the domain to decide.
SECURE_HSTS_SECONDS = whole_number("HSTS_SECONDS", 86_400) if SECURE_COOKIES else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = flag("HSTS_SUBDOMAINS")
SECURE_HSTS_PRELOAD = flag("HSTS_PRELOAD")
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]  # called without the proxy
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "webapp.common.error_views.csrf_failure"
# Comma-separated addresses and networks of the proxies that end TLS: their X-Forwarded-For, -Proto
# and -Host are believed. TRUST_PROXY=1 believes every sender: only if nothing but a proxy that
# overwrites these headers can reach this server.
TRUSTED_PROXIES = read_networks(text("TRUSTED_PROXIES"))
TRUST_PROXY = flag("TRUST_PROXY")
if TRUSTED_PROXIES or TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    USE_X_FORWARDED_HOST = True

# -- Language and time --------------------------------------------------------------------------

# The language of the pages for staff, whatever a browser asks for, of mails to staff and of what
# jobs and the history store. The product has English; TRANSLATIONS is a folder with the catalogues
# of other languages, such as nl/LC_MESSAGES/django.mo.
STAFF_LANGUAGE = text("STAFF_LANGUAGE", "en")
TRANSLATIONS = text("TRANSLATIONS")
_catalogue = f"{to_locale(STAFF_LANGUAGE)}/LC_MESSAGES/django.mo"
if STAFF_LANGUAGE != "en" and not (TRANSLATIONS and Path(TRANSLATIONS, _catalogue).is_file()):
    raise refused("STAFF_LANGUAGE", f"en, or a language with a file {_catalogue} in TRANSLATIONS")
LANGUAGE_CODE = "en-gb" if STAFF_LANGUAGE == "en" else STAFF_LANGUAGE
USE_I18N = True
STUDENT_LANGUAGES = {"en": "English", "es": "Español"}  # students choose one for their pages
LANGUAGES = list(({STAFF_LANGUAGE: STAFF_LANGUAGE} | STUDENT_LANGUAGES).items())
# Everything that people read, in English; and the Spanish of the students' pages.
LOCALE_PATHS = [
    *([Path(TRANSLATIONS)] if TRANSLATIONS else []),
    BASE_DIR / "webapp" / "locale",
    BASE_DIR / "webapp" / "surveys" / "locale",
]
USE_TZ = True
TIME_ZONE = text("TIME_ZONE", "UTC")
USE_THOUSAND_SEPARATOR = False

# -- Mail ---------------------------------------------------------------------------------------

# smtp://user:password@host:587 (TLS by STARTTLS), smtps://... (TLS from the start). If unset,
# mails are written as files into the instance folder, for trying them out.
if text("EMAIL_URL"):
    _mail = urlsplit(text("EMAIL_URL"))
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST = _mail.hostname or "localhost"
    EMAIL_PORT = _mail.port or (465 if _mail.scheme == "smtps" else 587)
    EMAIL_HOST_USER = unquote(_mail.username or "")
    EMAIL_HOST_PASSWORD = unquote(_mail.password or "")
    EMAIL_USE_SSL = _mail.scheme == "smtps"
    EMAIL_USE_TLS = _mail.scheme == "smtp" and bool(_mail.username)
    EMAIL_TIMEOUT = 10
else:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = INSTANCE_DIR / "mail"
# imaps://user:password@host/INBOX: the mailbox of EMAIL_FROM, which gets undeliverable mails.
BOUNCES_URL = text("BOUNCES_URL")
DEFAULT_FROM_EMAIL = text("EMAIL_FROM", "housing@localhost")
# https://housing.example: the start of links in mails. If unset, the address under which the sender
# reached this server, which students may be unable to reach.
PUBLIC_URL = text("PUBLIC_URL").rstrip("/")

# -- Webhooks -----------------------------------------------------------------------------------

# Private networks that may be called nevertheless, such as 10.1.0.0/16; none by default.
WEBHOOK_NETWORKS = read_networks(text("WEBHOOK_NETWORKS").replace(" ", ","))

# -- Backups ------------------------------------------------------------------------------------

# Folder for the backups of the operations page, on the host of the worker that makes them, and
# the number of backups kept there.
BACKUP_FOLDER = Path(text("BACKUP_FOLDER") or INSTANCE_DIR / "backups")
BACKUPS_KEPT = whole_number("BACKUPS_KEPT", 14, least=1)

# -- Jobs ---------------------------------------------------------------------------------------

JOB_HARD_TIME_LIMIT = 6 * 3600  # seconds
JOB_HEARTBEAT_SECONDS = 2.0
JOB_ORPHAN_SECONDS = 30.0  # silence after which a claimed job counts as abandoned
JOB_SWEEP_SECONDS = 5.0
JOB_STUCK_SECONDS = 300.0  # a worker that takes no job for this long, though one waits, is ended
JOB_IDLE_SECONDS = 60.0  # idle time after which a used process is replaced by a small one
JOB_MAX_DEATHS = 5  # deaths of its own process; a server that stops or restarts does not count
JOB_MAX_ATTEMPTS = 100  # whatever ended them: stops a job that ends its whole worker


def _celery_url(url: str) -> str:
    """Return a Redis address as Celery spells it: a unix socket is ``redis+socket://``."""
    return "redis+socket://" + url.removeprefix("unix://") if url.startswith("unix://") else url


def _running_broker() -> str:
    """Return the broker address that a running supervisor left for this installation's commands."""
    path = INSTANCE_DIR / "broker.url"
    return path.read_text(encoding="ascii").strip() if path.exists() else ""


REDIS_URL = text("REDIS_URL") or _running_broker()
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # Counters that all processes share, see webapp/common/limits.py.
    "limits": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "limits"},
}
# Maximum waiting jobs of one organisation, calls a minute of one token, and wrong tokens a minute
# from one address.
ORGANISATION_MAX_WAITING_JOBS = whole_number("ORGANISATION_MAX_WAITING_JOBS", 200)
# Maximum running jobs of one organisation in one queue (short, long, card).
ORGANISATION_MAX_RUNNING_JOBS = whole_number("ORGANISATION_MAX_RUNNING_JOBS", 1_000)
# Scheduler of Dask's workers, tcp://HOST:8786 or tls://HOST:8786, if one learning job may use more
# hosts than its own. Sets of fewer pixels (at the size of their models) are learned on one host.
DASK_SCHEDULER = text("DASK_SCHEDULER")
SPREAD_PIXELS = number("SPREAD_PIXELS", 2e7)
# A prediction of more images is divided into pieces of this many, which all workers take in turn.
PIECE_IMAGES = whole_number("PIECE_IMAGES", 100, least=1)
REMOVED_AT_ONCE = 200  # images and predictions that one request removes; a job removes more
API_CALLS_A_MINUTE = whole_number("API_CALLS_A_MINUTE", 600)
API_WRONG_TOKENS_A_MINUTE = whole_number("API_WRONG_TOKENS_A_MINUTE", 20)
BROKER_URL = REDIS_URL or "redis://127.0.0.1:6379/0"
CELERY_BROKER_URL = _celery_url(BROKER_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_TIME_LIMIT = JOB_HARD_TIME_LIMIT
CELERY_TASK_SOFT_TIME_LIMIT = JOB_HARD_TIME_LIMIT - 120  # raises in the job, which reports it
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A process of a worker that has not started after this many seconds is killed, and another started.
# With Celery's four, a busy machine kills every one of them, and no job is ever taken.
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 120.0
CELERY_WORKER_MAX_TASKS_PER_CHILD = 50
# A process that has grown beyond this is replaced after its job.
CELERY_WORKER_MAX_MEMORY_PER_CHILD = int(number("JOB_MEMORY_GB", 1) * 1e6)  # kB
CELERY_TASK_DEFAULT_QUEUE = "short"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# A broker that refuses writes, such as one with a full disk, is waited for like one that is away.
# Otherwise Celery ends the worker, and its process may hang while it ends.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A message unacknowledged for this long is delivered again: never while its job may still run.
    "visibility_timeout": 2 * JOB_HARD_TIME_LIMIT,
    # A broker that accepts connections and never answers blocks nobody for ever.
    "socket_connect_timeout": 2,
    "socket_timeout": 5,
    "health_check_interval": 10,
    "socket_keepalive": True,
}
# redis-py 8 deprecates an argument that Celery's transport still passes.
warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(redis|kombu)\b")

# -- Operation ----------------------------------------------------------------------------------

# Django's admin at /operations/rows/, for operators alone: webapp/operations/admin.py.
OPERATOR_ADMIN = flag("OPERATOR_ADMIN")
METRICS_TOKEN = text("METRICS_TOKEN")  # of Prometheus; unset: no /metrics
MIN_FREE_GB = number("MIN_FREE_GB", 1)  # with less, /readyz fails

# -- Log ----------------------------------------------------------------------------------------

# One line of JSON per request and job goes into LINES_LOG, or to the other lines if unset.
# The file is moved away when it has LINES_LOG_MEGABYTES; with 0 another program may move it.
LOGGING = logging_settings(
    level=text("LOG_LEVEL", "INFO"),
    lines_file=text("LINES_LOG"),
    max_lines_bytes=whole_number("LINES_LOG_MEGABYTES", 0) * 10**6,
)
# The owner of the domain decides on subdomains and preload lists (HSTS_SUBDOMAINS, HSTS_PRELOAD).
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
