"""The nouns: one word per line. Columns are two or more spaces apart.

    english    german with article, plural    kinds

An irregular English plural follows a slash. A German plural of `-` marks a word without a plural (milk),
which takes no `a` in English either. `weak` marks a masculine that ends in -n or -en outside the nominative
singular (der Junge, den Jungen). Each word for a person has one translation: because English does not show
the gender, a teacher is always a woman here and a baker a man. Verbs and adjectives refer to nouns by their
kinds. A `family` noun mostly belongs to someone (my aunt), and nobody has more than one of a `sole` noun.
"""

NOUNS = """
teacher            die Lehrerin, Lehrerinnen                     person
baker              der Bäcker, Bäcker                            person
doctor             die Ärztin, Ärztinnen                         person
farmer             der Bauer, Bauern, weak                       person
neighbour          der Nachbar, Nachbarn, weak                   person family
student            der Student, Studenten, weak                  person
boy                der Junge, Jungen, weak                       person child
girl               das Mädchen, Mädchen                          person child
child/children     das Kind, Kinder                              person child
woman/women        die Frau, Frauen                              person
man/men            der Mann, Männer                              person
friend             der Freund, Freunde                           person family
mother             die Mutter, Mütter                            person family sole
father             der Vater, Väter                              person family sole
sister             die Schwester, Schwestern                     person family
brother            der Bruder, Brüder                            person family
grandmother        die Großmutter, Großmütter                    person family sole
grandfather        der Großvater, Großväter                      person family sole
aunt               die Tante, Tanten                             person family
uncle              der Onkel, Onkel                              person family
daughter           die Tochter, Töchter                          person family
son                der Sohn, Söhne                               person family
waiter             der Kellner, Kellner                          person
painter            die Malerin, Malerinnen                       person
gardener           der Gärtner, Gärtner                          person
singer             die Sängerin, Sängerinnen                     person
colleague          die Kollegin, Kolleginnen                     person family
guest              der Gast, Gäste                               person
tourist            der Tourist, Touristen, weak                  person
writer             die Schriftstellerin, Schriftstellerinnen     person
policeman/policemen  der Polizist, Polizisten, weak              person
postman/postmen    der Briefträger, Briefträger                  person

dog                der Hund, Hunde                               animal pet swimmer
cat                die Katze, Katzen                             animal pet
horse              das Pferd, Pferde                             animal
cow                die Kuh, Kühe                                 animal
bird               der Vogel, Vögel                              animal bird
duck               die Ente, Enten                               animal bird swimmer
chicken            das Huhn, Hühner                              animal
goat               die Ziege, Ziegen                             animal
donkey             der Esel, Esel                                animal
mouse/mice         die Maus, Mäuse                               animal
rabbit             das Kaninchen, Kaninchen                      animal pet
hedgehog           der Igel, Igel                                animal
squirrel           das Eichhörnchen, Eichhörnchen                animal
bear               der Bär, Bären, weak                          animal swimmer
fox                der Fuchs, Füchse                             animal
frog               der Frosch, Frösche                           animal swimmer
owl                die Eule, Eulen                               animal bird

apple              der Apfel, Äpfel                              food fruit
pear               die Birne, Birnen                             food fruit
cherry             die Kirsche, Kirschen                         food fruit
plum               die Pflaume, Pflaumen                         food fruit
strawberry         die Erdbeere, Erdbeeren                       food fruit
potato/potatoes    die Kartoffel, Kartoffeln                     food vegetable
tomato/tomatoes    die Tomate, Tomaten                           food vegetable fruit
carrot             die Karotte, Karotten                         food vegetable
onion              die Zwiebel, Zwiebeln                         food vegetable
mushroom           der Pilz, Pilze                               food wildfood
egg                das Ei, Eier                                  food cooked
sausage            die Wurst, Würste                             food
cake               der Kuchen, Kuchen                            food baked
biscuit            der Keks, Kekse                               food baked
roll               das Brötchen, Brötchen                        food baked
bread              das Brot, -                                   food baked
cheese             der Käse, -                                   food
butter             die Butter, -                                 food
honey              der Honig, -                                  food
jam                die Marmelade, -                              food cooked
soup               die Suppe, -                                  food cooked
rice               der Reis, -                                   food cooked
salad              der Salat, -                                  food
fish               der Fisch, -                                  food cooked
meat               das Fleisch, -                                food cooked
chocolate          die Schokolade, -                             food
water              das Wasser, -                                 drink
milk               die Milch, -                                  drink
coffee             der Kaffee, -                                 drink
tea                der Tee, -                                    drink
juice              der Saft, -                                   drink
wine               der Wein, -                                   drink
beer               das Bier, -                                   drink

book               das Buch, Bücher                              text thing flat
letter             der Brief, Briefe                             text mail thing flat
newspaper          die Zeitung, Zeitungen                        text thing flat
magazine           die Zeitschrift, Zeitschriften                text thing flat
postcard           die Postkarte, Postkarten                     text mail thing flat
poem               das Gedicht, Gedichte                         text tale
novel              der Roman, Romane                             text
message            die Nachricht, Nachrichten                    text mail
recipe             das Rezept, Rezepte                           text
diary              das Tagebuch, Tagebücher                      text thing flat
story              die Geschichte, Geschichten                   text tale topic
joke               der Witz, Witze                               tale
song               das Lied, Lieder                              tune topic
secret             das Geheimnis, Geheimnisse                    topic
idea               die Idee, Ideen                               topic
dream              der Traum, Träume                             topic
journey            die Reise, Reisen                             topic
mistake            der Fehler, Fehler                            topic
problem            das Problem, Probleme                         topic
word               das Wort, Wörter                              note
name               der Name, Namen, weak                         note
number             die Nummer, Nummern                           note
address            die Adresse, Adressen                         note

coat               der Mantel, Mäntel                            clothing
hat                der Hut, Hüte                                 clothing
shirt              das Hemd, Hemden                              clothing
dress              das Kleid, Kleider                            clothing
jacket             die Jacke, Jacken                             clothing
skirt              der Rock, Röcke                               clothing
scarf/scarves      der Schal, Schals                             clothing
shoe               der Schuh, Schuhe                             clothing
boot               der Stiefel, Stiefel                          clothing
glove              der Handschuh, Handschuhe                     clothing
sweater            der Pullover, Pullover                        clothing
cap                die Mütze, Mützen                             clothing

glass              das Glas, Gläser                              vessel
cup                die Tasse, Tassen                             vessel
bottle             die Flasche, Flaschen                         vessel
bowl               die Schüssel, Schüsseln                       vessel
plate              der Teller, Teller                            vessel
pot                der Topf, Töpfe                               vessel
vase               die Vase, Vasen                               vessel
basket             der Korb, Körbe                               vessel
bucket             der Eimer, Eimer                              vessel

table              der Tisch, Tische                             furniture surface
chair              der Stuhl, Stühle                             furniture surface
bed                das Bett, Betten                              furniture surface
sofa               das Sofa, Sofas                               furniture surface
bench              die Bank, Bänke                               furniture surface
cupboard           der Schrank, Schränke                         furniture openable
shelf/shelves      das Regal, Regale                             furniture

key                der Schlüssel, Schlüssel                      thing flat
umbrella           der Regenschirm, Regenschirme                 thing
bag                die Tasche, Taschen                           thing luggage
suitcase           der Koffer, Koffer                            thing luggage openable
backpack           der Rucksack, Rucksäcke                       thing luggage
box                die Kiste, Kisten                             thing openable
knife/knives       das Messer, Messer                            thing flat
spoon              der Löffel, Löffel                            thing flat
fork               die Gabel, Gabeln                             thing flat
candle             die Kerze, Kerzen                             thing candle
ball               der Ball, Bälle                               thing
picture            das Bild, Bilder                              thing picture flat
photo              das Foto, Fotos                               thing picture flat
present            das Geschenk, Geschenke                       thing
clock              die Uhr, Uhren                                machine
mirror             der Spiegel, Spiegel                          thing
ticket             die Fahrkarte, Fahrkarten                     thing flat
pencil             der Bleistift, Bleistifte                     thing flat
blanket            die Decke, Decken                             thing flat
doll               die Puppe, Puppen                             thing
guitar             die Gitarre, Gitarren                         thing
violin             die Geige, Geigen                             thing
flower             die Blume, Blumen                             plant bouquet
rose               die Rose, Rosen                               plant bouquet
tree               der Baum, Bäume                               plant
lamp               die Lampe, Lampen                             switch machine
radio              das Radio, Radios                             switch machine
computer           der Computer, Computer                        switch machine
oven               der Ofen, Öfen                                switch machine
door               die Tür, Türen                                openable
window             das Fenster, Fenster                          openable
gate               das Tor, Tore                                 openable
car                das Auto, Autos                               vehicle machine
bicycle            das Fahrrad, Fahrräder                        vehicle machine
boat               das Boot, Boote                               vehicle machine
bus/buses          der Bus, Busse                                transport
train              der Zug, Züge                                 transport
ship               das Schiff, Schiffe                           transport
house              das Haus, Häuser                              building
bridge             die Brücke, Brücken                           building
tower              der Turm, Türme                               building
"""

# Places have two more columns, the English:German prepositions for being there and for going there. German
# `in`, `an` and `auf` take the dative for being there and the accusative for going there; `zu` always takes
# the dative.
PLACES = """
kitchen            die Küche, Küchen                 in:in    into:in    home room
living room        das Wohnzimmer, Wohnzimmer        in:in    into:in    home room
bedroom            das Schlafzimmer, Schlafzimmer    in:in    into:in    home room
cellar             der Keller, Keller                in:in    into:in    home room
garden             der Garten, Gärten                in:in    into:in    home green
balcony            der Balkon, Balkone               on:auf   onto:auf   home
market             der Markt, Märkte                 at:auf   to:auf     town shop
bakery             die Bäckerei, Bäckereien          in:in    to:zu      town shop
station            der Bahnhof, Bahnhöfe             at:an    to:zu      town stop
airport            der Flughafen, Flughäfen          at:an    to:zu      town stop
harbour            der Hafen, Häfen                  at:an    to:zu      town stop
café               das Café, Cafés                   in:in    to:in      town
restaurant         das Restaurant, Restaurants       in:in    to:in      town
theatre            das Theater, Theater              at:in    to:in      town
cinema             das Kino, Kinos                   at:in    to:in      town
museum             das Museum, Museen                in:in    to:in      town
hotel              das Hotel, Hotels                 in:in    to:zu      town
town               die Stadt, Städte                 in:in    to:in      town settlement
village            das Dorf, Dörfer                  in:in    to:in      town settlement
castle             das Schloss, Schlösser            in:in    to:zu      town
hospital           das Krankenhaus, Krankenhäuser    in:in    to:in      work
school             die Schule, Schulen               at:in    to:in      work
university/universities  die Universität, Universitäten  at:an  to:zu    work
library            die Bibliothek, Bibliotheken      in:in    to:in      work
office             das Büro, Büros                   in:in    to:in      work
farm               der Bauernhof, Bauernhöfe         on:auf   to:auf     nature settlement
lake               der See, Seen                     at:an    to:an      nature shore
river              der Fluss, Flüsse                 at:an    to:an      nature shore
beach              der Strand, Strände               on:an    to:an      nature shore
forest             der Wald, Wälder                  in:in    into:in    nature green
park               der Park, Parks                   in:in    to:in      nature green
meadow             die Wiese, Wiesen                 in:auf   to:auf     nature green
island             die Insel, Inseln                 on:auf   to:auf     nature settlement
"""
