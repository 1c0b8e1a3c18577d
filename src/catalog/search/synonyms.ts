/** Words that people use for the same thing. The search adds them to a query with little weight. */
import { getOrMake } from '../../base/memo.ts';
import { termOf } from './words.ts';

/** One group in each line. A word may be in several groups: it is not the same as the words of the other group. */
const GROUPS = `
find search lookup query locate discover seek explore browse
fetch retrieve read obtain show view display load download pull
list enumerate overview catalog
create add new insert generate produce build compose draft write
delete remove erase drop clear destroy purge uninstall
update edit modify change patch alter adjust rewrite replace
send post submit dispatch deliver publish share
upload push import store save
run execute invoke launch start trigger
stop cancel abort terminate kill end
check verify validate test inspect examine
compare diff difference comparison
analyze analysis analytics insight evaluate assess statistic metric
calculate compute calculator math arithmetic
convert transform translate conversion converter
summarize summary summarization digest abstract recap
copy duplicate clone
move rename transfer
open navigate visit
close finish complete
buy purchase order shop shopping
book reserve reservation booking
schedule calendar event appointment meeting agenda
remind reminder notification alert notify
email mail inbox message
chat conversation talk discuss dialogue
image picture photo photograph illustration drawing artwork
draw paint sketch
video clip movie film footage youtube
movie film cinema
song track music audio playlist lyric
singer artist band musician
book novel reading literature
paper article research academic scholar publication study journal
news headline article press
document doc file pdf
folder directory
file path
text content
website site web page url link
internet web online
repository repo
pull_request pr merge
commit revision changeset
issue ticket bug defect
code program script source programming
database db sql table
record row entry item
column field attribute
user account member profile person people
customer client
company business organization firm enterprise
employee staff worker
job career employment vacancy hiring position
resume cv
weather forecast temperature climate rain
air pollution quality
map location place address geography geocode
direction route navigation driving
nearby near local
distance far
hotel accommodation lodging hostel airbnb stay
flight airline airplane plane airport
trip travel vacation holiday itinerary tour journey
restaurant food dining eat cafe
recipe cook cooking meal dish ingredient
diet nutrition calorie food
health medical doctor medicine hospital
exercise workout fitness gym training
car vehicle automobile
house home property estate apartment rental
stock share equity ticker market investment
price cost quote rate fee
currency exchange forex
crypto cryptocurrency bitcoin blockchain coin
money finance financial bank
payment pay invoice billing charge
tax taxes
discount coupon deal promotion voucher offer
product goods item merchandise
gift present
review rating feedback opinion
game gaming play
sport football soccer basketball match team
league tournament championship
horoscope astrology zodiac tarot
language translate translation
word dictionary definition meaning vocabulary
grammar spelling proofread
student course lesson learning education class teach tutor learn
law legal lawyer attorney
chart graph plot diagram visualization visualize
screenshot capture snapshot
log trace history
error exception failure crash
time clock hour
date day
now current latest recent live
random shuffle
key token credential secret
password passphrase
login signin authenticate authentication
permission access role
label tag
comment note annotation remark
task todo
plan planning planner
idea brainstorm inspiration
name title
picture avatar
phone telephone mobile call
sms text
social media twitter facebook instagram
domain dns hostname
server host machine
container docker pod
deploy deployment release rollout
cluster kubernetes k8s
size length dimension
number count amount quantity total
country nation state
city town
speech voice
pet dog cat animal
astronomy space planet
joke humor funny
quote saying
spreadsheet excel sheet xlsx csv workbook
presentation slide deck powerpoint
subtitle caption transcript transcription
vulnerability cve security exploit
workflow pipeline automation automate
wiki wikipedia encyclopedia knowledge
browser webpage web
scrape crawl extract parse
click press tap
type fill enter input
wait sleep pause
download save export
zip archive compress
encrypt cipher decrypt
hash checksum
barcode qr
wallet balance
transaction transfer payment
subscribe subscription newsletter
follower following follow
tweet post status
channel room thread
memory remember recall note
graph relation node entity
merge combine join concatenate
split divide separate
sort order rank
filter select choose
count number total
average mean median
train railway ticket
taxi ride uber cab
parcel package shipment shipping delivery courier tracking
warehouse inventory stock supply
seller vendor merchant supplier
candidate applicant recruit
school university college
patient clinical disease diagnosis symptom
drug medication pharmacy
gene protein dna genome
molecule chemical compound
earthquake disaster hazard
visa passport immigration
election vote politics political government
crime police criminal
charity nonprofit donation
podcast episode show
tv television series show
anime manga comic cartoon
concert festival ticket event
beauty cosmetic makeup skincare
clothing fashion outfit apparel
wine beer drink beverage cocktail
garden plant flower
real_estate property house mortgage
loan mortgage credit debt
insurance policy coverage
budget expense spending
salary wage income pay
revenue profit sale earning
portfolio investment asset fund
seo keyword ranking
advertisement ad campaign marketing
logo brand icon
color palette
font typography
sentiment emotion mood
toxicity profanity offensive
spam fraud phishing
timezone time utc
sunrise sunset moon
ocean tide wave
ip network address
ping latency uptime
cpu memory ram usage
backup restore snapshot
config configuration setting preference option
environment variable env
install setup
upgrade update version
debug troubleshoot diagnose
review inspect audit
approve accept confirm
reject decline deny
assign delegate
milestone deadline due
sprint board backlog kanban
`;

function readGroups(): Map<string, string[]> {
  const table = new Map<string, Set<string>>();
  for (const line of GROUPS.trim().split('\n')) {
    const terms = [
      ...new Set(
        line
          .split(' ')
          .flatMap((word) => word.split('_'))
          .map(termOf),
      ),
    ].filter((one) => one !== null);
    for (const term of terms)
      for (const other of terms) if (other !== term) getOrMake(table, term, () => new Set<string>()).add(other);
  }
  return new Map([...table].map(([term, others]) => [term, [...others]]));
}

let table: ReadonlyMap<string, readonly string[]> | null = null;

/** The terms that mean about the same; none if there are none. */
export function synonymsOf(term: string): readonly string[] {
  // Read with the first query: most gateways never search.
  table ??= readGroups();
  return table.get(term) ?? NONE;
}

const NONE: readonly string[] = [];
