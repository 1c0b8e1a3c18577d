/**
 * What in a definition speaks to the model behind the back of its user: characters that nobody sees, and phrases that
 * give orders instead of describing. It is a list of known tricks, not a proof: text without a finding may still be
 * hostile.
 */

/** In any script these are either controls or invisible. */
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Surrogate}\ufff9-\ufffb]/gu;

/**
 * Where a language or an emoji needs an invisible character: the character, what comes before it, and what after it.
 * Only a few characters around it are looked at, because a server may send many of them.
 */
const NEEDED: readonly { readonly character: RegExp; readonly before: RegExp; readonly after: RegExp }[] = [
  {
    // Scripts in which letters are joined, or kept apart.
    character: /[\u200c\u200d]/u,
    before:
      /[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Mongolian}\p{M}]$/u,
    after: /^(?:[\p{L}\p{M}\s]|$)/u,
  },
  {
    // Emoji that are made of others.
    character: /\u200d/u,
    before: /(?:\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})$/u,
    after: /^\p{Extended_Pictographic}/u,
  },
  { character: /[\ufe0e\ufe0f]/u, before: /\p{Emoji}$/u, after: /^(?!\p{Variation_Selector})/u },
  // Flags of regions.
  { character: /[\u{e0020}-\u{e007f}]/u, before: /\u{1f3f4}[\u{e0020}-\u{e007e}]*$/u, after: /^/u },
  // One selector chooses the form of a Han character. Several in a row are hidden text.
  { character: /\p{Variation_Selector}/u, before: /\p{Script=Han}$/u, after: /^(?!\p{Variation_Selector})/u },
  // Marks of direction next to a letter that is written from right to left.
  { character: /[\u200e\u200f\u061c]/u, before: /[\p{Script=Arabic}\p{Script=Hebrew}]\P{L}{0,3}$/u, after: /^/u },
  { character: /[\u200e\u200f\u061c]/u, before: /(?:)/u, after: /^\P{L}{0,3}[\p{Script=Arabic}\p{Script=Hebrew}]/u },
];
/** How many characters before and after are looked at. A flag of a region has at most 14 in one. */
const NEAR = 16;

/** The invisible characters of a text that its language does not need, as `U+200B`. Each once. */
export function hiddenCharacters(text: string): string[] {
  const found = new Set<string>();
  for (const { 0: character, index } of text.matchAll(INVISIBLE)) {
    if (found.has(character)) continue;
    const before = text.slice(Math.max(0, index - NEAR), index);
    const after = text.slice(index + character.length, index + character.length + NEAR);
    const isNeeded = NEEDED.some(
      (one) => one.character.test(character) && one.before.test(before) && one.after.test(after),
    );
    if (!isNeeded) found.add(character);
  }
  return [...found].map((one) => `U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`);
}

const SECRET =
  '(?:conversation|chat history|message history|prior messages|previous messages|credentials?|passwords?|passphrases?|api[ _-]?keys?|access tokens?|auth(?:entication)? tokens?|session tokens?|cookies|secrets?|private keys?|ssh keys?|environment variables?|env vars|seed phrase|wallet|\\.env|id_rsa|contents? of (?:the |all |any )?(?:files?|~))';
const PERSON = '(?:users?|humans?|operators?|person|people|anyone|anybody|developer|them|owner)';

/** Each with what it looks like. */
const PHRASES: readonly (readonly [string, RegExp])[] = [
  [
    'tells the model to ignore other instructions',
    /\b(?:ignore|disregard|forget|overrid(?:e|es|ing)|bypass|supersedes?|do not follow (?:the|your)|don['’]t follow (?:the|your))\b[^.\n]{0,50}\b(?:previous|prior|above|earlier|preceding|other|system|safety|all|any|your)\b[^.\n]{0,30}\b(?:instructions?|prompts?|rules?|guidelines?|messages|polic(?:y|ies)|restrictions?|safeguards?|tool descriptions?)\b/i,
  ],
  [
    'asks the model to hide something from the user',
    new RegExp(
      `\\b(?:do not|don['’]t|never|must not|avoid|should not|no need to)\\s+(?:ever\\s+)?(?:tell|inform|mention|reveal|notify|alert|disclose|warn|telling|informing|mentioning|revealing|notifying|disclosing)\\b[^.\\n]{0,40}\\b(?:to )?(?:the |this )?${PERSON}\\b|\\b(?:do not|don['’]t|never) (?:mention|reveal|disclose|report|log) (?:this|that|it|any of this)\\b|\\bwithout (?:(?:asking|telling|informing|notifying|alerting) (?:the )?${PERSON}|(?:the )?${PERSON}['’]?s? (?:knowing|knowledge|consent|noticing))\\b|\\b(?:secretly|covertly|hide (?:this|it) from|keep (?:this|it) (?:secret|hidden|from)|${PERSON} (?:must|should|need) not (?:know|see|notice|be told))`,
      'i',
    ),
  ],
  [
    'pretends to be a message of the system',
    /<\/?\s*(?:important|system|instructions?|secret|hidden|assistant|admin|critical|urgent|override|tool_code)\b[^>]{0,80}>|\[\/?(?:INST|SYSTEM|ADMIN)\]|<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|^\s*(?:#{1,6}\s*)?(?:system|assistant|developer)(?: (?:message|prompt|note|override))?\s*:/im,
  ],
  [
    'gives the model a new role or new orders',
    /\b(?:you are now|from now on,?\s+(?:you|always|every)|your (?:new|real|true) (?:task|role|goal|instructions?)|pretend (?:to be|that you)|act as (?:an? )?(?:admin|root|system|unrestricted|developer)|enter (?:developer|debug|god|admin) mode|jailbreak)\b|\bnew (?:system )?instructions?\s*:/i,
  ],
  [
    'wants to be used with or before all other tools',
    /\b(?:before|prior to|after|instead of|whenever)\b[^.\n]{0,30}\b(?:any|every|each|all|other)\b[^.\n]{0,15}\b(?:tools?|tool calls?|actions?|requests?)\b[^.\n]{0,60}\b(?:must|always|required|mandatory|first|call this|use this)\b|\b(?:must|always)\b[^.\n]{0,40}\b(?:before|prior to|after|instead of)\b[^.\n]{0,20}\b(?:any|every|all) (?:other )?(?:tools?|tool calls?)\b|\b(?:when|if)\b[^.\n]{0,30}\b(?:calling|using|invoking)\b[^.\n]{0,20}\b(?:another|other|the) (?:server|tool)s?\b[^.\n]{0,60}\b(?:must|always|instead|change|replace|bcc)\b/i,
  ],
  [
    'asks for secrets or for the conversation',
    new RegExp(
      `\\b(?:send|post|forward|upload|exfiltrate|transmit|copy|bcc|cc|leak|pass|include|attach|append|provide|submit|report|put|paste|insert|add|write|place|embed|encode|supply|dump|collect|gather|read|fetch|extract)\\b[^.\\n]{0,60}\\b(?:the |all |any |every |your |their |user['’]?s? )(?:[\\w-]+ ){0,3}?${SECRET}`,
      'i',
    ),
  ],
  [
    'asks for the instructions of the model',
    /\b(?:system prompt|(?:your|the) (?:initial|original|hidden|full) (?:instructions|prompt))\b/i,
  ],
  [
    'names files with credentials',
    /(?:~|\/root|\/home\/[\w*]+|\$HOME|%USERPROFILE%)[/\\]\.(?:ssh|aws|gnupg|kube|docker|netrc|npmrc|pypirc|git-credentials|cursor|claude|config[/\\](?:gh|gcloud))|\bid_(?:rsa|ed25519|ecdsa)\b|(?:read|cat|contents? of|open|include)\b[^.\n]{0,40}\/etc\/(?:shadow|passwd|sudoers)\b|\.aws[/\\]credentials|\bmcp\.json\b/i,
  ],
  [
    'wants e-mail or data to go somewhere else as well',
    /\b(?:always|must|also|and|every|each|all)\b[^.\n]{0,40}\b(?:bcc|blind[ -]copy|cc)\b[^.\n]{0,20}[\w.+-]+@|\b(?:also|always) (?:send|forward|post|upload)\b|\bredirect all\b|\breplace the (?:recipient|destination)\b/i,
  ],
  [
    'contains commands for a shell',
    /\b(?:curl|wget)\b[^\n]{0,80}\|\s*(?:ba|z)?sh\b|\bbase64 -d\b|\brm -rf [/~]|\bnc -e\b|\$\((?:curl|wget|cat|env)\b/i,
  ],
  ['contains a comment that is not shown', /<!--|\[\/\/\]: #/],
  ['contains an image that sends data', /!\[[^\]]{0,200}\]\(https?:\/\/[^)]{0,500}[?&{]/i],
  [
    'contains encoded text',
    /(?<![\w+/])(?=[a-z\d+/]{0,63}\d)[a-z\d+/]{64}|(?:\\x[0-9a-f]{2}){8,}|(?:&#x?[0-9a-f]{2,6};){6,}/i,
  ],
  [
    'mixes alphabets within a word',
    /(?<!\p{L})(?=\p{L}{0,60}[a-z])(?=\p{L}{0,60}[\p{Script=Cyrillic}\p{Script=Greek}])\p{L}{3}/iu,
  ],
];

/** The phrases are searched for up to here, so that no server can keep the gateway busy. */
const LONGEST = 16 * 1024;

/** What is suspicious in a text: each finding in a few words that fit after "it". */
export function findings(whole: string): string[] {
  const text = whole.slice(0, LONGEST);
  const hidden = hiddenCharacters(whole);
  return [
    ...(whole.length > LONGEST ? [`contains a text of more than ${LONGEST} characters`] : []),
    ...(hidden.length > 0 ? [`contains invisible characters (${hidden.join(', ')})`] : []),
    ...PHRASES.flatMap(([what, phrase]) => (phrase.test(text) ? [what] : [])),
  ];
}
