"""Spanish texts of the questionnaire templates."""

SPANISH = {
    "Your answers help us to find you a roommate you get along with.": (
        "Tus respuestas nos ayudan a encontrarte un compañero o compañera con quien te lleves bien."
    ),
    (
        "Housing staff read your answers, use them to find you a roommate, and read everything "
        "that you write in your own words. Other students never see your answers. Answer for "
        "yourself: nobody else may fill this in for you."
    ): (
        "El personal de alojamiento lee tus respuestas, las usa para encontrarte compañero o "
        "compañera de cuarto y lee todo lo que escribas con tus palabras. Otros estudiantes nunca "
        "las ven. Responde tú: nadie más puede hacerlo por ti."
    ),
    "How much do you agree?": "¿Cuánto estás de acuerdo?",
    "I do not agree at all": "Nada de acuerdo",
    "I agree completely": "Totalmente de acuerdo",
    "Rarely: a few times a year. Sometimes: every month. Often: every week.": (
        "Casi nunca: unas pocas veces al año. A veces: cada mes. A menudo: cada semana."
    ),
    "Never": "Nunca",
    "Rarely": "Casi nunca",
    "Sometimes": "A veces",
    "Often": "A menudo",
    # Your days
    "Your days": "Tus días",
    "What time do you get up on a weekday?": "¿A qué hora te levantas entre semana?",
    "Before 6 am": "Antes de las 6:00",
    "6 to 7 am": "De 6:00 a 7:00",
    "7 to 8 am": "De 7:00 a 8:00",
    "8 to 9 am": "De 8:00 a 9:00",
    "After 9 am": "Después de las 9:00",
    "Roommates who get up at the same time wake each other less.": (
        "Quienes se levantan a la misma hora se despiertan menos."
    ),
    "I wake up easily when there is noise.": "Me despierto fácilmente cuando hay ruido.",
    "A light sleeper needs a roommate who is quiet at night.": (
        "Quien tiene el sueño ligero necesita silencio por la noche."
    ),
    "What time do you usually go to bed on a weekday?": (
        "¿A qué hora te acuestas normalmente entre semana?"
    ),
    "Before 10 pm": "Antes de las 22:00",
    "10 to 11 pm": "De 22:00 a 23:00",
    "11 pm to midnight": "De 23:00 a medianoche",
    "Midnight to 1 am": "De medianoche a 1:00",
    "After 1 am": "Después de la 1:00",
    "Different bedtimes are the most common reason for trouble.": (
        "Acostarse a horas distintas es lo que más problemas causa."
    ),
    "I study with music or TV on.": "Estudio con música o con la tele puesta.",
    "Some people need silence to study, others do not.": (
        "Hay quien necesita silencio para estudiar y hay quien no."
    ),
    # Your room
    "Your room": "Tu habitación",
    "I put my things away every day.": "Recojo mis cosas todos los días.",
    "Things on the floor are in your roommate's way too.": (
        "Lo que dejas en el suelo también le molesta a quien vive contigo."
    ),
    "How warm do you like your room?": "¿Cómo te gusta la temperatura de tu habitación?",
    "Cold": "Fría",
    "Cool": "Fresca",
    "Mild": "Templada",
    "Warm": "Cálida",
    "A room has one heater and one window.": "Una habitación tiene un radiador y una ventana.",
    "Is it okay if your roommate uses your things?": (
        "¿Te parece bien que usen tus cosas en la habitación?"
    ),
    "Some people share their things, others do not.": (
        "Hay quien comparte sus cosas y hay quien no."
    ),
    "I need it to be quiet when I am in my room.": (
        "Necesito que haya silencio cuando estoy en mi habitación."
    ),
    "Some people rest in their room, others meet friends there.": (
        "Hay quien descansa en su habitación y hay quien recibe allí a sus amistades."
    ),
    # Other people
    "Other people": "Otras personas",
    "I like to have people around me.": "Me gusta tener gente a mi alrededor.",
    "Some people want company at home, others want to be alone.": (
        "Hay quien quiere compañía en casa y hay quien quiere estar a solas."
    ),
    "How often do friends visit you in your room?": (
        "¿Con qué frecuencia te visitan amigos en tu habitación?"
    ),
    "Your guests are guests in your roommate's room too.": (
        "Tus visitas entran también en la habitación de otra persona."
    ),
    "How often does a guest stay the night?": ("¿Con qué frecuencia se queda a dormir una visita?"),
    "Your guest sleeps in your roommate's room too.": (
        "Esa visita duerme también en la habitación de otra persona."
    ),
    # Habits
    "Habits": "Costumbres",
    "How often do you smoke or vape?": "¿Con qué frecuencia fumas o vapeas?",
    "Smoke bothers people who do not smoke.": "El humo molesta a quien no fuma.",
    "How often do you drink alcohol?": "¿Con qué frecuencia bebes alcohol?",
    "Some people want a room without alcohol.": "Hay quien quiere una habitación sin alcohol.",
    # For your room
    "For your room": "Para tu habitación",
    "What is your gender?": "¿Cuál es tu género?",
    "Woman": "Mujer",
    "Man": "Hombre",
    "Non-binary": "No binario",
    "Another": "Otro",
    "We use your gender only to decide who can share a room with you.": (
        "Usamos tu género solo para decidir quién puede compartir habitación contigo."
    ),
    # Last week
    "Last week": "La semana pasada",
    "What time did you turn off the light last Tuesday?": (
        "¿A qué hora apagaste la luz el martes pasado?"
    ),
    "One real night tells us more than a guess.": (
        "Una noche real nos dice más que una suposición."
    ),
    "How many nights did you sleep somewhere else last week?": (
        "¿Cuántas noches dormiste en otro sitio la semana pasada?"
    ),
    "None": "Ninguna",
    "1 or 2": "1 o 2",
    "3 or 4": "3 o 4",
    "5 or more": "5 o más",
    "If you are often away, your roommate is often alone.": (
        "Si sales mucho, la otra persona está a menudo a solas."
    ),
    "How often did you press snooze last week?": (
        "¿Cuántas veces pospusiste la alarma la semana pasada?"
    ),
    "Once or twice": "Una o dos veces",
    "Most days": "Casi todos los días",
    "Every day": "Todos los días",
    "Alarms that ring again and again wake two people.": (
        "Una alarma que suena una y otra vez despierta a dos personas."
    ),
    # Sharing a room
    "Sharing a room": "Compartir habitación",
    "How long can a dirty cup stay on the desk?": (
        "¿Cuánto tiempo puede quedarse una taza sucia en la mesa?"
    ),
    "An hour": "Una hora",
    "A day": "Un día",
    "A few days": "Unos días",
    "I do not mind": "Me da igual",
    "“Tidy” means something different to everybody.": (
        "«Ordenado» no significa lo mismo para todo el mundo."
    ),
    "My roommate should ask me before bringing a guest.": (
        "Me deben preguntar antes de traer una visita."
    ),
    "Most fights about guests begin because nobody asked.": (
        "Muchas peleas por las visitas empiezan porque nadie preguntó."
    ),
    "Can you fall asleep while somebody is talking?": ("¿Puedes dormirte mientras alguien habla?"),
    "If you can, different bedtimes matter less.": (
        "Si puedes, importa menos acostarse a horas distintas."
    ),
    "What do you do in your room in the evening?": (
        "¿Qué haces en tu habitación por la tarde y la noche?"
    ),
    "Choose everything that fits.": "Elige todo lo que corresponda.",
    "Study": "Estudiar",
    "Music": "Música",
    "Games": "Juegos",
    "Calls": "Llamadas",
    "Sport": "Deporte",
    "I am out": "Salgo",
    "In the evening both of you are in the room.": (
        "A esas horas las dos personas están en la habitación."
    ),
    "Something bothers you. When do you tell your roommate?": (
        "Algo te molesta. ¿Cuándo se lo dices a quien vive contigo?"
    ),
    "Right away": "Al momento",
    "The same day": "El mismo día",
    "After a few days": "Después de unos días",
    "Probably never": "Seguramente nunca",
    "Some people speak up at once, others wait.": (
        "Hay quien lo dice enseguida y hay quien espera."
    ),
    # Your roommate
    "Your roommate": "Con quién vives",
    "Is there somebody you want to live with?": "¿Hay alguien con quien quieras vivir?",
    "Type their code here. They will see that you asked, and must type your code too.": (
        "Escribe aquí su código. Verá que lo pides, y también tiene que escribir el tuyo."
    ),
    "If both of you ask, we try to give you one room.": (
        "Si las dos personas lo piden, intentamos darles la misma habitación."
    ),
    "Is there anything else we should know?": "¿Hay algo más que debamos saber?",
    "For example: I cannot climb stairs, or I have an allergy.": (
        "Por ejemplo: no puedo subir escaleras, o tengo una alergia."
    ),
    "Housing staff read this to learn what you need.": (
        "El personal de alojamiento lo lee para saber qué necesitas."
    ),
    # After a term
    "You have lived with your roommate for a while. Tell us how it went.": (
        "Has vivido un tiempo con tu compañero o compañera. Cuéntanos cómo ha ido."
    ),
    "Your roommate this term": "Tu compañero o compañera este período",
    "My roommate and I get along well.": "Me llevo bien con quien comparte mi habitación.",
    "Good and bad pairs both teach us how to choose roommates.": (
        "Las buenas y las malas parejas nos enseñan a elegir compañeros."
    ),
    "Would you live together again?": "¿Viviríais otra vez en la misma habitación?",
    "This tells us more than any single habit.": "Esto nos dice más que cualquier costumbre.",
    "Did one of you move to another room?": "¿Se cambió alguien de habitación?",
    "Nobody moved": "Nadie se cambió",
    "I moved": "Me cambié yo",
    "My roommate moved": "Se cambió mi compañero o compañera",
    "We both moved": "Nos cambiamos los dos",
    "A change of room often says that two people did not fit.": (
        "Un cambio de habitación suele decir que dos personas no encajaban."
    ),
}
