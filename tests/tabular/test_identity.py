"""Columns that say who a person is are never questions, also in files of two students."""

import pytest

from engine.tabular.answers import read_answers
from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table
from engine.tabular.recipes import apply_recipe, recipe_of
from engine.tabular.table import Table
from tests.tabular.file_writers import as_csv

PERSONAL = {
    "First name": ("Ann", "Bob"),
    "Last name": ("Lee", "Ray"),
    "Preferred name": ("Annie", "Bobby"),
    "Name": ("Ann Lee", "Bob Ray"),
    "Student": ("Ann Lee", "Bob Ray"),
    "Resident": ("Ann Lee", "Bob Ray"),
    "Nickname": ("Annie", "Bobby"),
    "Last": ("Lee", "Ray"),
    "First": ("Ann", "Bob"),
    "What name do you go by?": ("Annie", "Bobby"),
    "Vorname": ("Anna", "Bodo"),
    "Pronouns": ("she/her", "he/him"),
    "What are your pronouns?": ("she", "they"),
    "Anything else": ("she/her", "they/them"),
    "E-mail": ("a@x.edu", "b@x.edu"),
    "Email address": ("none yet", "b@x.edu"),
    "Parent's e-mail": ("a@x.edu", "b@x.edu"),
    "Phone": ("555-1234", "555-9999"),
    "Mobile number": ("0171 444", "0172 444"),
    "Emergency contact": ("Mum", "Dad"),
    "Student number": ("12", "13"),
    "Date of birth": ("2001-01-02", "2002-02-03"),
    "Home address": ("1 High Street", "2 Low Street"),
    "Instagram": ("ann_x", "bob_y"),
}
# Titles of names by language, with the cells of a file of two students.
LANGUAGES = {
    "English": ("Full name", "Surname", "First name"),
    "German": ("Nachname", "Vorname", "Familienname"),
    "Spanish": ("Nombre completo", "Apellidos", "Nombre"),
    "French": ("Nom de famille", "Prénom", "Nom"),
    "Italian": ("Nome e cognome", "Cognome", "Nome"),
    "Portuguese": ("Nome completo", "Sobrenome"),
    "Polish": ("Imię i nazwisko", "Imię", "Nazwisko"),
    "Dutch": ("Naam", "Achternaam", "Voornaam"),
    "Swedish": ("Namn", "Förnamn", "Efternamn"),
    "Norwegian": ("Navn", "Fornavn", "Etternavn"),
    "Finnish": ("Nimi", "Etunimi", "Sukunimi"),
    "Romanian": ("Nume", "Prenume"),
    "Hungarian": ("Név", "Vezetéknév", "Keresztnév"),
    "Czech": ("Jméno", "Příjmení"),
    "Croatian": ("Ime", "Prezime"),
    "Turkish": ("Ad", "Soyad", "Ad Soyad", "İsim"),
    "Russian": ("Имя", "Фамилия", "ФИО"),
    "Ukrainian": ("Ім'я", "Прізвище"),
    "Greek": ("Όνομα", "Επώνυμο", "Ονοματεπώνυμο"),
    "Hebrew": ("שם", "שם מלא"),
    "Arabic": ("الاسم", "اسم"),
    "Chinese": ("姓名", "名字"),
    "Japanese": ("氏名", "お名前"),
    "Korean": ("이름", "성명"),
}
QUESTIONS = {
    "Hall name": ("Baker", "Elm"),
    "Phone use at night": ("often", "never"),
    "Phone": ("often", "never"),
    "Bedtime": ("Early", "Late"),
    "Sleep": ("early bird", "night owl"),
    "Do you use your phone in bed?": ("yes", "no"),
}


def table_of(title: str, cells: tuple[str, str], rows: int) -> Table:
    lines = [["id", title, "Smokes"]]
    lines += [[f"X{k}", cells[k % 2], ("yes", "no")[k % 2]] for k in range(rows)]
    return read_table(as_csv(lines))


def test_full_names_that_all_differ_are_no_question_whatever_their_title() -> None:
    column = guess_choices(table_of("Untitled", ("Ann Lee", "Bob Ray"), 2)).columns[1]
    assert column.role is Role.NAME


@pytest.mark.parametrize("rows", [2, 3, 40])
@pytest.mark.parametrize(("title", "cells"), PERSONAL.items())
def test_a_personal_column_is_never_a_question(
    title: str, cells: tuple[str, str], rows: int
) -> None:
    column = guess_choices(table_of(title, cells, rows)).columns[1]
    assert column.role not in (Role.QUESTION, Role.CONSTRAINT, Role.NEED)


@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize(
    ("language", "title"), [(name, title) for name, titles in LANGUAGES.items() for title in titles]
)
def test_a_title_of_names_is_recognised_in_its_language(
    language: str, title: str, rows: int
) -> None:
    # Single words, as family names are: the cells alone do not show that they are names.
    found = {}
    for spelling in (title, title.upper(), f"{title}:", f"{title} *"):
        column = guess_choices(table_of(spelling, ("Baker", "Quiet"), rows)).columns[1]
        found[spelling] = column.role
    assert set(found.values()) == {Role.NAME}, (language, found)


@pytest.mark.parametrize("rows", [2, 40])
def test_the_same_cells_under_another_title_are_no_names(rows: int) -> None:
    column = guess_choices(table_of("Wing", ("Baker", "Quiet"), rows)).columns[1]
    assert column.role in (Role.QUESTION, Role.CONSTRAINT)


@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize(("title", "cells"), QUESTIONS.items())
def test_a_question_with_such_a_word_stays_one(
    title: str, cells: tuple[str, str], rows: int
) -> None:
    column = guess_choices(table_of(title, cells, rows)).columns[1]
    assert column.role in (Role.QUESTION, Role.CONSTRAINT)


def test_the_parts_of_a_name_are_joined_and_others_names_are_left_out() -> None:
    table = read_table(
        as_csv(
            [
                ["id", "Last Name", "First Name", "Preferred name", "Pronouns", "E-mail",
                 "Parent name", "Roommate name", "Smokes"],
                ["1", "Silva", "José", "Zé", "he/him", "jose@x.edu", "Rui Silva", "Ann Lee", "yes"],
                ["2", "Lee", "Ann", "", "she/her", "ann@x.edu", "Kim Lee", "José Silva", "no"],
            ]
        )
    )  # fmt: skip
    choices = guess_choices(table)
    assert [c.role for c in choices.columns] == [
        Role.ID, Role.NAME, Role.NAME, Role.PREFERRED, Role.PRONOUNS, Role.EMAIL, Role.IGNORE,
        Role.IGNORE, Role.QUESTION,
    ]  # fmt: skip
    answers = read_answers(build_preview(table, choices))
    assert answers.names == ("José Silva", "Ann Lee")
    assert answers.preferred == ("Zé", "")
    assert answers.pronouns == ("he/him", "she/her")
    assert answers.emails == ("jose@x.edu", "ann@x.edu")


def test_a_column_of_full_names_wins_over_its_parts() -> None:
    table = read_table(
        as_csv(
            [
                ["id", "First name", "Full name", "Smokes"],
                ["1", "José", "José Silva", "yes"],
                ["2", "Ann", "Ann Lee", "no"],
            ]
        )
    )
    roles = [c.role for c in guess_choices(table).columns]
    assert roles == [Role.ID, Role.IGNORE, Role.NAME, Role.QUESTION]


FULL = ("Anna Lee", "Bodo Ray", "Chloé Dupont")
GIVEN, FAMILY = ("Anna", "Bodo", "Chloé"), ("Lee", "Ray", "Dupont")
ELSEWHERE = {
    "Name (as in passport)": FULL, "Who are you?": FULL, "Wer bist du?": FULL,
    "¿Quién eres?": FULL, "Qui êtes-vous ?": FULL, "Vollständiger Name": FULL,
    "Name auf dem Ausweis": FULL, "Nombre (como en el pasaporte)": GIVEN,
    "Nom (comme sur le passeport)": FAMILY, "Rufname": GIVEN, "Nachname": FAMILY,
    "Nombre preferido": GIVEN, "Apellidos": FAMILY, "Primer apellido": FAMILY,
    "Nombre y apellidos": FULL, "Nom d’usage": FAMILY, "Nom de famille": FAMILY,
    "Prénom": GIVEN, "Family name / surname": FAMILY, "Vor-/Nachname": FULL,
    "How should we call you?": GIVEN, "Goes by": GIVEN, "¿Cómo te llamas?": GIVEN,
    "Wie heißt du?": GIVEN, "Фамилия": FAMILY, "Имя": GIVEN, "姓名": ("李小龙", "王芳", "张伟"),
    "氏名": ("山田太郎", "佐藤花子", "鈴木一郎"), "이름": ("김철수", "이영희", "박민수"),
    "Column 3": FULL, "x": ("Lee, Anna", "Ray, Bodo", "Dupont, Chloé"),
    "Adresse": ("Hauptstr. 1", "Ring 2", "Weg 3"), "Discord": ("ann#1", "bob#2", "cd#3"),
    "WhatsApp": ("+49171", "+49172", "+49173"), "IM handle": ("annx", "bodoy", "cz"),
    "Fecha de nacimiento": ("2001-01-02", "2002-02-03", "2003-03-04"),
    "Date de naissance": ("02/01/2001", "03/02/2002", "04/03/2003"),
    "Courriel": ("a@x.fr", "b@x.fr", "c@x.fr"), "Handynummer": ("0171 4", "0172 5", "0173 6"),
}  # fmt: skip
ANSWERS = {
    "Hausname": ("Baker", "Elm", "Baker"), "Nombre de cafés par jour": ("1", "2", "3"),
    "Nom du bâtiment": ("A", "B", "A"), "Wann gehst du ins Bett?": ("früh", "spät", "früh"),
    "¿Fumas?": ("sí", "no", "no"), "Nombre de tu residencia": ("Baker", "Elm", "Baker"),
    "Who are you as a sleeper?": ("early bird", "night owl", "early bird"),
    "Tag / Nacht": ("Tag", "Nacht", "Tag"), "Yes / no": ("yes", "no", "yes"),
}  # fmt: skip


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize(("title", "cells"), ELSEWHERE.items())
def test_names_under_titles_of_other_languages_are_no_question(
    title: str, cells: tuple[str, ...], rows: int
) -> None:
    """Files of two or three students used to score most of these."""
    for head in (["id", title, "Smokes"], [title, "Smokes"], ["Smokes", title]):
        values = {"id": [f"X{k}" for k in range(rows)], title: cells, "Smokes": ("yes", "no", "no")}
        lines = [head, *([values[name][k] for name in head] for k in range(rows))]
        column = guess_choices(read_table(as_csv(lines))).columns[head.index(title)]
        assert column.role not in (Role.QUESTION, Role.CONSTRAINT, Role.NEED), head


@pytest.mark.parametrize("rows", [3, 30])
@pytest.mark.parametrize(("title", "cells"), ANSWERS.items())
def test_questions_of_other_languages_stay_questions(
    title: str, cells: tuple[str, ...], rows: int
) -> None:
    lines = [["id", title, "Smokes"]]
    lines += [[f"X{k}", cells[k % 3], ("yes", "no")[k % 2]] for k in range(rows)]
    role = guess_choices(read_table(as_csv(lines))).columns[1].role
    assert role in (Role.QUESTION, Role.CONSTRAINT)


@pytest.mark.parametrize(
    ("family", "given"), [("Nom", "Prénom"), ("Name", "Vorname"), ("Фамилия", "Имя")]
)
def test_a_family_name_called_name_is_joined_with_the_given_name(family: str, given: str) -> None:
    lines = [["id", family, given, "Smokes"]]
    lines += [[f"X{k}", FAMILY[k], GIVEN[k], ("yes", "no")[k % 2]] for k in range(3)]
    table = read_table(as_csv(lines))
    answers = read_answers(build_preview(table, guess_choices(table)))
    assert answers.names == FULL


def test_a_full_name_beside_a_given_name_stays_as_it_is() -> None:
    lines = [["id", "First name", "Name", "Smokes"]]
    lines += [[f"X{k}", GIVEN[k], FULL[k], ("yes", "no")[k % 2]] for k in range(3)]
    table = read_table(as_csv(lines))
    answers = read_answers(build_preview(table, guess_choices(table)))
    assert answers.names == FULL


def test_a_recipe_of_an_earlier_version_makes_no_question_of_a_name() -> None:
    lines = [["id", "Nombre preferido", "Smokes"]]
    lines += [[f"X{k}", GIVEN[k], ("yes", "no")[k % 2]] for k in range(3)]
    table = read_table(as_csv(lines))
    choices = guess_choices(table)
    earlier = choices.with_column(1, role=Role.QUESTION)
    content = recipe_of(table, earlier)
    again = apply_recipe(table, content)
    assert again.columns[1].role is choices.columns[1].role


REQUESTED = (
    "Name or e-mail of requested roommate", "Roommate email", "Requested roommate's e-mail",
    "Who would you like to live with?", "E-Mail Mitbewohner", "Correo del compañero de cuarto",
)  # fmt: skip


@pytest.mark.parametrize("title", REQUESTED)
@pytest.mark.parametrize("own", [True, False])
def test_the_e_mail_of_a_requested_roommate_is_not_that_of_the_student(
    title: str, own: bool
) -> None:
    """It was stored as the student's own e-mail, so that letters went to somebody else."""
    lines = [["id" if own else "Full name", title, "Smokes"]]
    lines += [[f"X{k}" if own else FULL[k], f"p{k}@x.edu", ("yes", "no")[k % 2]] for k in range(3)]
    table = read_table(as_csv(lines))
    choices = guess_choices(table)
    assert choices.columns[1].role is Role.IGNORE
    assert read_answers(build_preview(table, choices)).emails == ("", "", "")
