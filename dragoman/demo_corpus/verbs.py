# ruff: noqa: E501 (a table is easier to read with long rows than with broken ones)
"""The verbs: one word per line. Columns are two or more spaces apart.

    english    german    frame    subject kinds    object kinds    where, notes

English: base, past, participle; only the base if regular. A second word stays (`turn on`: turns on).
German: infinitive, third person, participle; only the infinitive if regular; `|` follows a separable
particle; `ist` before the participle marks verbs whose perfect takes sein.
Frame: `-` nothing; `acc`, `dat`, `dat+acc` objects; `for:auf+acc` an object with prepositions;
`to` a destination; `at` a place; `acc+onto` an object put somewhere.
Where: kinds of places in which it happens. `stative` verbs have no progressive and no imperative.
"""

VERBS = """
sleep slept slept        schlafen schläft geschlafen        -    person animal     -         bedroom garden balcony
work                     arbeiten                           -    person            -         home town work
laugh                    lachen                             -    person            -         home town work
cry                      weinen                             -    child             -         home work
dance                    tanzen                             -    person            -         home town green
sing sang sung           singen singt gesungen              -    person bird       -         home green
swim swam swum           schwimmen schwimmt ist geschwommen  -   person swimmer    -         -
smile                    lächeln lächelt gelächelt          -    person            -         -
chat                     plaudern                           -    person            -         home town green
shop                     ein|kaufen                         -    person            -         shop town
watch television         fern|sehen sieht gesehen           -    person            -         room
get got got up           auf|stehen steht ist gestanden     -    person            -         -
wake woke woken up       auf|wachen wacht ist gewacht       -    person animal     -         -
fall fell fallen asleep  ein|schlafen schläft ist geschlafen  -  person animal     -         room green
arrive                   an|kommen kommt ist gekommen       -    person transport  -         stop
depart                   ab|fahren fährt ist gefahren       -    person transport  -         -
come came come back      zurück|kommen kommt ist gekommen   -    person pet        -         -
come came come along     mit|kommen kommt ist gekommen      -    person pet        -         -
travel travelled travelled  reisen reist ist gereist        -    person            -         -
jump                     springen springt ist gesprungen    -    animal child      -         green

live                     wohnen                             at   person            -         settlement, stative
stay                     bleiben bleibt ist geblieben       at   person            -         home town work nature
sit sat sat              sitzen sitzt gesessen              at   person pet bird   -         home town green shore
stand stood stood        stehen steht gestanden             at   person animal     -         green shore stop
meet met met             treffen trifft getroffen           acc  person            person    town shore green
visit                    besuchen                           acc  person            person    -

go went gone             gehen geht ist gegangen            to   person            -         home town work nature
come came come           kommen kommt ist gekommen          to   person pet        -         home town work nature
run ran run              laufen läuft ist gelaufen          to   person animal     -         home green shore stop
drive drove driven       fahren fährt ist gefahren          to   person            -         town work shore stop
hurry                    eilen eilt ist geeilt              to   person            -         town work stop
return                   zurück|kehren kehrt ist gekehrt    to   person            -         town settlement

eat ate eaten            essen isst gegessen                acc  person            food                 home town green
drink drank drunk        trinken trinkt getrunken           acc  person            drink                home town green
cook                     kochen                             acc  person            cooked vegetable     kitchen
bake                     backen backt gebacken              acc  person            baked                kitchen
taste                    probieren                          acc  person            food drink           shop
peel                     schälen                            acc  person            fruit vegetable      kitchen garden
cut cut cut              schneiden schneidet geschnitten    acc  person            baked vegetable fruit cheese sausage meat  kitchen
order                    bestellen                          acc  person            food drink           town
buy bought bought        kaufen                             acc  person            food drink text thing clothing vessel  shop
sell sold sold           verkaufen                          acc  person            food vehicle furniture house clothing  shop
pay paid paid for        bezahlen                           acc  person            food drink clothing luggage  town
need                     brauchen                           acc  person            thing vehicle vessel clothing  stative
have had had             haben hat gehabt                   acc  person            pet horse donkey idea problem dream secret vehicle thing  stative
love                     lieben                             acc  person            animal tune text food person   stative
know knew known          kennen kennt gekannt               acc  person            person tale tune place note    stative
see saw seen             sehen sieht gesehen                acc  person            animal person building vehicle  nature town, stative
hear heard heard         hören                              acc  person            animal tune person   home nature, stative
find found found         finden findet gefunden             acc  person            thing clothing wildfood note  home nature, stative
look for                 suchen                             acc  person            thing clothing pet person     home town nature
lose lost lost           verlieren verliert verloren        acc  person            thing clothing       nature town, stative
forget forgot forgotten  vergessen vergisst vergessen       acc  person            thing note tale clothing  town
hide hid hidden          verstecken                         acc  person            thing mail           home
collect                  sammeln sammelt gesammelt          acc  person            picture postcard wildfood bouquet  -
choose chose chosen      aus|suchen                         acc  person            clothing text thing furniture  town
borrow                   aus|leihen leiht geliehen          acc  person            book novel magazine vehicle  town work
read read read           lesen liest gelesen                acc  person            text                 home town green work
write wrote written      schreiben schreibt geschrieben     acc  person            text tune            home green work
write wrote written down  auf|schreiben schreibt geschrieben  acc  person          note tale topic      work home
understand understood understood  verstehen versteht verstanden  acc  person       topic word text tale person  stative
explain                  erklären                           acc  person            topic word tale      work
paint                    malen                              acc  person            animal picture plant building vessel  home nature
draw drew drawn          zeichnen                           acc  person            animal plant building vehicle  home nature
photograph               fotografieren                      acc  person            animal person building plant  nature town
wear wore worn           tragen trägt getragen              acc  person            clothing             -
carry                    tragen trägt getragen              acc  person            luggage vessel furniture  -
put put put on           an|ziehen zieht gezogen            acc  person            clothing             room
take took taken off      aus|ziehen zieht gezogen           acc  person            clothing             room
try tried tried on       an|probieren                       acc  person            clothing             town
wash                     waschen wäscht gewaschen           acc  person            clothing vehicle pet fruit  cellar garden
clean                    putzen                             acc  person            room vehicle openable furniture  -
tidy                     auf|räumen                         acc  person            room                 -
repair                   reparieren                         acc  person            vehicle machine furniture  cellar garden
open                     auf|machen                         acc  person            openable bottle letter  home
close                    zu|machen                          acc  person            openable             home
turn on                  ein|schalten                       acc  person            switch               home work
turn off                 aus|schalten                       acc  person            switch               home work
light lit lit            an|zünden                          acc  person            candle               home
call                     an|rufen ruft gerufen              acc  person            person               home stop
fetch                    ab|holen                           acc  person            person luggage postcard letter  stop work
invite                   ein|laden lädt geladen             acc  person            person               -
greet                    begrüßen                           acc  person            person               town home
look at                  an|sehen sieht gesehen             acc  person            picture animal clothing building  town nature
pack                     ein|packen                         acc  person            thing clothing text  home
unpack                   aus|packen                         acc  person            luggage thing vessel  home
throw threw thrown away  weg|werfen wirft geworfen          acc  person            text clothing vessel picture  home
bring brought brought along  mit|bringen bringt gebracht    acc  person            baked drink thing            -
plant                    pflanzen                           acc  person            plant vegetable      garden
water                    gießen gießt gegossen              acc  person            plant                garden balcony
feed fed fed             füttern                            acc  person            animal               garden green
watch                    beobachten                         acc  person pet        animal person        nature
catch caught caught      fangen fängt gefangen              acc  person pet        animal               nature

help                     helfen hilft geholfen              dat  person            person               home work green
thank                    danken                             dat  person            person               -
follow                   folgen folgt ist gefolgt           dat  person pet        person animal        green
listen to                zu|hören                           dat  person            person               town home
answer                   antworten                          dat  person            person               -
trust                    vertrauen                          dat  person            person               stative
congratulate             gratulieren                        dat  person            person               work

give gave given          geben gibt gegeben                 dat+acc  person        food thing bouquet clothing mail  -
show showed shown        zeigen                             dat+acc  person        text thing picture animal room castle  -
bring brought brought    bringen bringt gebracht            dat+acc  person        food drink bouquet thing vessel   home
send sent sent           schicken                           dat+acc  person        mail bouquet picture thing        -
lend lent lent           leihen leiht geliehen              dat+acc  person        vehicle clothing book magazine thing  -
tell told told           erzählen                           dat+acc  person        story joke secret dream  home green
sell sold sold           verkaufen                          dat+acc  person        food vehicle furniture            shop
promise                  versprechen verspricht versprochen  dat+acc  person       thing vehicle pet baked           -

wait                     warten                             for:auf+acc    person pet  person transport mail       home stop
look                     auf|passen                         after:auf+acc  person      child pet luggage           home green
think thought thought    denken denkt gedacht               of:an+acc      person      person topic                -
talk                     sprechen spricht gesprochen        about:über+acc  person     topic person text tune      town home
laugh                    lachen                             about:über+acc  person     tale animal mistake         work
dream                    träumen                            of:von+dat     person      animal place journey person  -
dance                    tanzen                             with:mit+dat   person      person                      home town green
play                     spielen                            with:mit+dat   person pet  pet child                   home green
ask                      bitten bittet gebeten              for:um+acc     person      food drink thing note       shop café restaurant

put put put              stellen                            acc+onto  person       vessel               -
lay laid laid            legen                              acc+onto  person       flat clothing        -
"""

# Verbs that take a clause. `that` begins with that/dass, `whether` with whether/ob, `to` is an infinitive.
# `stative` as above.
CLAUSE_VERBS = """
say said said            sagen                              that
think thought thought    denken denkt gedacht               that
believe                  glauben                            that     stative
hope                     hoffen                             that     stative
hear heard heard         hören                              that     stative
know knew known          wissen weiß gewusst                that     stative
notice                   bemerken                           that     stative
ask                      fragen                             whether
wonder                   überlegen überlegt überlegt        whether
try                      versuchen                          to
forget forgot forgotten  vergessen vergisst vergessen       to
plan                     planen                             to
promise                  versprechen verspricht versprochen  to
begin began begun        an|fangen fängt gefangen           to
start                    beginnen beginnt begonnen          to
"""
