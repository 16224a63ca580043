# ruff: noqa: E501 (a table is easier to read with long rows than with broken ones)
"""Adjectives, adverbials, modal verbs and names. Columns are two or more spaces apart."""

# english (comparative)    german (stem before an ending, after a slash) (comparative)    kinds of nouns, !kinds it does not suit
# A comparative of `-` means that there is none; without a comparative it is regular.
ADJECTIVES = """
old            alt älter              person !child animal thing text clothing vessel furniture machine openable building town
young          jung jünger            person !child animal
big            groß größer            animal child fruit vessel furniture luggage openable transport building plant room town shore
small          klein                  animal child food vessel furniture luggage openable transport building plant room town shore
tired          müde                   person animal
hungry         hungrig                person animal
happy          glücklich              person
friendly       freundlich             person pet
polite         höflich                person
clever         klug klüger            person animal
curious        neugierig              person animal
nervous        nervös                 person
brave          mutig                  person
cheerful       fröhlich               person
lazy           faul                   person animal
sick           krank kränker          person animal
strong         stark stärker          person animal drink
wild           wild                   animal
shy            scheu                  animal
thirsty        durstig                person animal
famous         berühmt                person !child !family building book novel poem tune
fresh          frisch                 food drink plant
sweet          süß                    fruit baked drink
delicious      lecker                 food drink
hot            heiß                   cooked drink vegetable
cold           kalt kälter            cooked drink shore
warm           warm wärmer            baked drink clothing cooked room
ripe           reif                   fruit
sour           sauer/saur saurer      fruit
expensive      teuer/teur teurer      food drink clothing vehicle furniture machine text
cheap          billig                 food drink clothing furniture machine
new            neu                    thing text clothing vessel furniture machine transport building town tune
beautiful      schön                  thing tune text clothing vessel plant building town nature picture
heavy          schwer                 luggage vessel furniture box
empty          leer                   vessel luggage room town transport
clean          sauber                 clothing vessel vehicle openable room shore
dirty          schmutzig              clothing vessel vehicle openable room animal
broken         kaputt -               machine furniture openable
red            rot -                  clothing vessel vehicle bouquet apple cherry luggage ball pencil candle umbrella blanket
blue           blau -                 clothing vessel vehicle openable luggage ball pencil candle umbrella blanket
green          grün -                 clothing vessel furniture openable vehicle
yellow         gelb -                 clothing bouquet vessel
white          weiß -                 clothing animal bouquet vessel building
black          schwarz -              clothing animal luggage machine
brown          braun -                clothing animal furniture
round          rund -                 baked vessel surface tower
long           lang länger            text tune clothing journey candle
short          kurz kürzer            text tale tune journey
interesting    interessant            text topic work
boring         langweilig             text topic tune
funny          lustig                 tale tune dream
difficult      schwierig              text topic note
strange        seltsam                topic tune note animal
sad            traurig                person tale tune
quiet          ruhig                  settlement nature room work
dark           dunkel/dunkl dunkler   room forest
modern         modern                 work machine building furniture
"""

# english    german    the tenses it goes with. {n} stands for a number word, {hour} for an hour of the clock.
TIMES = """
today                  heute                  past progressive future
tomorrow               morgen                 future
soon                   bald                   future
next week              nächste Woche          future
next year              nächstes Jahr          future
in {n} days            in {n} Tagen           future
in {n} weeks           in {n} Wochen          future
yesterday              gestern                past
last week              letzte Woche           past
last summer            letzten Sommer         past
{n} days ago           vor {n} Tagen          past
{n} weeks ago          vor {n} Wochen         past
{n} years ago          vor {n} Jahren         past
on Monday              am Montag              past future
on Wednesday           am Mittwoch            past future
on Friday              am Freitag             past future
on Sunday              am Sonntag             past future
at {hour} o'clock      um {hour} Uhr          present past future
in the morning         am Morgen              present past
in the afternoon       am Nachmittag          present past
in the evening         am Abend               present past
at night               in der Nacht           present past
every day              jeden Tag              present
every morning          jeden Morgen           present
every evening          jeden Abend            present
every week             jede Woche             present
in spring              im Frühling            present
in summer              im Sommer              present
in autumn              im Herbst              present
in winter              im Winter              present
after work             nach der Arbeit        present past future
before dinner          vor dem Abendessen     present past future
after breakfast        nach dem Frühstück     present past future
at the moment          im Moment              progressive
right now              gerade                 progressive
"""

ADVERBS = """
often                  oft                    present
always                 immer                  present
sometimes              manchmal               present past
rarely                 selten                 present
never                  nie                    present past
usually                meistens               present
perhaps                vielleicht             future
probably               wahrscheinlich         future
certainly              bestimmt               future
never                  nie                    future
already                schon                  perfect
finally                endlich                past perfect
"""

# A modal's English present and past, then German first person singular, first person plural and past.
# Modals with `to` inflect in English and take do-support. A past of `-` means that there is none.
MODALS = """
can        could      kann      können    konnte
must       had to     muss      müssen    musste
may        -          darf      dürfen    -
should     -          sollte    sollten   -
want to    wanted to  will      wollen    wollte
would like to  -      möchte    möchten   -
"""

NUMBERS = (
    "two zwei, three drei, four vier, five fünf, six sechs, seven sieben, eight acht, nine neun, ten zehn"
)

# english    german    the tenses of the main clause. `future` goes with a clause in the present.
CONJUNCTIONS = """
because       weil         present past
although      obwohl       present past
when          als          past
when          wenn         present
if            wenn         future
before        bevor        present past
while         während      progressive
as soon as    sobald       future
"""

WOMEN = "Anna Clara Emma Julia Laura Sophie"
MEN = "David Emil Martin Oskar Paul Simon"  # none ends in s, whose genitive is only an apostrophe
