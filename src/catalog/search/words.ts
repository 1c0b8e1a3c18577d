/**
 * Texts as the search reads them: terms, which are stems of words. Identifiers are split, words that say nothing are left
 * out, and scripts without spaces become pairs of characters. The same text always gives the same terms.
 */
import { BoundedMap } from '../../base/bounded-map.ts';

/** Words without content, and those with which people ask: rarity does not tame these, because tools seldom use them. */
const STOP_WORDS = new Set(
  (
    'a an the this that these those there here it its itself i me my mine we us our ours you your yours he him his she her ' +
    'hers they them their theirs who whom whose which what when where why how and or but nor so if then than as at by for ' +
    'from in into of off on onto out over to up upon with within without about across after against along among around ' +
    'before behind below between beyond during except through throughout toward under until while via per is am are was ' +
    'were be been being do does did doing done have has had having can could may might must shall should will would not no ' +
    'yes also any all both each every either few more most much many other others another some such own same too very just ' +
    'only even ever still yet already again once please thank thanks hello hi hey want wants wanted need needs needed like ' +
    'likes liked would help helps helping let lets tell give gives given using use used uses able im ive id ill dont cant ' +
    'know knowing wondering wonder looking trying try tried interested considering think going go get gets getting got ' +
    'really actually maybe perhaps could something anything everything someone anyone one ones way ways thing things lot ' +
    'lots kind etc eg ie okay ok well now currently specific based provide provides provided providing assist assistance ' +
    'recommend suggest suggestions recommendations best good great make makes sure additionally furthermore moreover besides ' +
    'specifically especially particular certain several various comprehensive including include includes included regarding ' +
    'ensure appreciate kindly hope hoping wish curious excited s t re ve ll d m'
  ).split(' '),
);

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts without spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}ー]+/u;
const UNSPACED_PARTS = new RegExp(`(${UNSPACED.source})`, 'u');
const PLAIN = /^[a-z]+$/;
/** Longer words are cut: nobody types them, and each would be kept. */
const LONGEST = 40;
/** The characters of a run that are split into words. */
const LONGEST_RUN = 200;
/** A name of two parts is also one word up to this length. */
const LONGEST_NAME = 12;
const DIACRITICS = /[\u0300-\u036f]/g;
const CASE_CHANGE = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;
const DIGIT_CHANGE = /(?<=\p{N})(?=\p{L})|(?<=\p{L})(?=\p{N})/u;

/** The terms of a text in their order, each as often as it occurs. */
export function termsOf(text: string): string[] {
  const terms: string[] = [];
  for (const word of wordsIn(text)) {
    const term = termOf(word);
    if (term !== null) terms.push(term);
  }
  return terms;
}

/** The words of a text in lower case, with identifiers split. */
export function wordsIn(text: string): string[] {
  const words: string[] = [];
  if (addPlainWords(words, text)) return words;
  words.length = 0;
  for (const [run] of text.normalize('NFKC').matchAll(WORD)) {
    if (PLAIN.test(run)) words.push(run.length > LONGEST ? run.slice(0, LONGEST) : run);
    else if (UNSPACED.test(run)) {
      for (const part of run.split(UNSPACED_PARTS)) {
        if (UNSPACED.test(part)) addPairs(words, part);
        else if (part !== '') addParts(words, part);
      }
    } else addParts(words, run);
  }
  return words;
}

// What a character is to the words of a text in ASCII.
const BETWEEN = 0;
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
const SORTS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  return /[a-z]/.test(character) ? LOWER : /[A-Z]/.test(character) ? UPPER : /[0-9]/.test(character) ? DIGIT : BETWEEN;
});

/**
 * The words of a text in ASCII, which nearly all texts are. By hand, because expressions over Unicode took most of the
 * time of an index. False if the text has other characters.
 */
function addPlainWords(words: string[], text: string): boolean {
  let start = 0;
  let isPlain = true;
  for (let i = 0; i <= text.length; i++) {
    const code = i === text.length ? 0 : text.charCodeAt(i);
    if (code > 127) return false;
    const sort = SORTS[code]!;
    if (sort !== BETWEEN) {
      isPlain &&= sort === LOWER;
      continue;
    }
    if (start < i) {
      if (isPlain) words.push(text.slice(start, Math.min(i, start + LONGEST)));
      else addPlainParts(words, text.slice(start, Math.min(i, start + LONGEST_RUN)), i - start);
    }
    start = i + 1;
    isPlain = true;
  }
  return true;
}

/** As `addParts`. `length` is that of the whole run, of which `run` is the beginning. */
function addPlainParts(words: string[], run: string, length: number): void {
  const lower = run.toLowerCase();
  let start = 0;
  let parts = 0;
  for (let i = 1; i <= run.length; i++) {
    if (i < run.length && !isBorder(run, i)) continue;
    words.push(lower.slice(start, Math.min(i, start + LONGEST)));
    start = i;
    parts++;
  }
  if (parts === 2 && length <= LONGEST_NAME) words.push(lower);
}

/** Whether a part of a run ends before this character. */
function isBorder(run: string, i: number): boolean {
  const before = SORTS[run.charCodeAt(i - 1)]!;
  const here = SORTS[run.charCodeAt(i)]!;
  if (before !== here) return here === UPPER || before === DIGIT || here === DIGIT;
  return here === UPPER && i + 1 < run.length && SORTS[run.charCodeAt(i + 1)] === LOWER;
}

/** The stem of a word in lower case; null if it says nothing. */
export function termOf(word: string): string | null {
  const known = KNOWN.get(word);
  if (known !== undefined) return known;
  const term = STOP_WORDS.has(word) || (word.length === 1 && word <= 'z') ? null : stem(word);
  KNOWN.set(word, term);
  return term;
}

/** Most words of a catalog occur many times. */
const KNOWN = new BoundedMap<string, string | null>(20_000);

function addPairs(words: string[], text: string): void {
  const characters = [...text];
  if (characters.length === 1) words.push(text);
  for (let i = 0; i + 1 < characters.length; i++) words.push(characters[i]! + characters[i + 1]!);
}

/** `getUserById2` has four words and a number. A name of two parts, such as GitHub or S3, is one word too. */
function addParts(words: string[], run: string): void {
  const parts = run
    .slice(0, LONGEST_RUN)
    .split(CASE_CHANGE)
    .flatMap((part) => part.split(DIGIT_CHANGE));
  // A run of marks alone leaves nothing.
  for (const part of parts.length === 2 && run.length <= LONGEST_NAME ? [...parts, run] : parts) {
    const word = fold(part);
    if (word !== '') words.push(word);
  }
}

function fold(word: string): string {
  return word.toLowerCase().normalize('NFD').replace(DIACRITICS, '').normalize('NFC').slice(0, LONGEST);
}

const VOWEL = /[aeiouy]/;

/** A light stemmer: endings of plurals and verbs. It need not give words, only the same for forms of one word. */
export function stem(word: string): string {
  if (word.length < 4 || !PLAIN.test(word)) return word;
  let stemmed = word;
  if (stemmed.endsWith('ies') && stemmed.length > 4) stemmed = `${stemmed.slice(0, -3)}y`;
  else if (/(ss|sh|ch|x|z)es$/.test(stemmed)) stemmed = stemmed.slice(0, -2);
  else if (/[^siu]s$/.test(stemmed)) stemmed = stemmed.slice(0, -1);
  const long = /^(.*?)(ations?|ators?|ating|ated|ings?|ed|ers?|ors?|ment|ly)$/.exec(stemmed);
  const ending = long?.[2] ?? '';
  const rest = long?.[1] ?? stemmed;
  if (ending !== '' && rest.length >= 3 && VOWEL.test(rest)) stemmed = rest;
  // "stopping" and "stop", "create" and "creating".
  if (ending !== '' && /([bdfgmnprt])\1$/.test(stemmed)) stemmed = stemmed.slice(0, -1);
  if (stemmed.endsWith('ate') && stemmed.length > 5) return stemmed.slice(0, -3);
  if (stemmed.endsWith('e') && stemmed.length > 3) return stemmed.slice(0, -1);
  return stemmed.endsWith('y') && stemmed.length > 3 ? `${stemmed.slice(0, -1)}i` : stemmed;
}
