/** A strict parser for the text format of Prometheus, 0.0.4. Anything that the format does not allow is an error. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

export function readExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let help: [string, string] | null = null;
  let current: [string, Family] | null = null;
  for (const line of text.slice(0, -1).split('\n')) {
    const helped = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line);
    if (helped !== null) {
      help = [helped[1]!, helped[2]!];
      continue;
    }
    const typed = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/.exec(line);
    if (typed !== null) {
      const [, name, type] = typed as unknown as [string, string, string];
      if (help?.[0] !== name) throw new Error(`${name} has no help before its type`);
      if (families.has(name)) throw new Error(`${name} is there twice`);
      current = [name, { type, help: help[1], samples: [] }];
      families.set(...current);
      continue;
    }
    const sample = readSample(line);
    const [name, family] = current ?? fail(`a sample before any type: ${line}`);
    const suffixes = family.type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    if (!suffixes.some((suffix) => sample.name === name + suffix)) fail(`${sample.name} does not belong to ${name}`);
    const key = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
    if (seen.has(key)) fail(`there twice: ${key}`);
    seen.add(key);
    family.samples.push(sample);
  }
  for (const [name, family] of families) if (family.type === 'histogram') checkHistogram(name, family);
  return families;
}

function readSample(line: string): Sample {
  const head = /^([a-zA-Z_:][a-zA-Z0-9_:]*)/.exec(line) ?? fail(`no name: ${line}`);
  const labels: Record<string, string> = {};
  let at = head[0].length;
  if (line[at] === '{') {
    do {
      at++;
      const label =
        /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"/.exec(line.slice(at)) ?? fail(`bad label: ${line}`);
      if (Object.hasOwn(labels, label[1]!)) fail(`label twice: ${line}`);
      labels[label[1]!] = label[2]!.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
      at += label[0].length;
    } while (line[at] === ',');
    if (line[at++] !== '}') fail(`labels do not end: ${line}`);
  }
  const value = /^ (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(line.slice(at)) ?? fail(`bad value: ${line}`);
  return { name: head[0], labels, value: Number(value[1]) };
}

/** Each histogram series has increasing bounds and counts, and ends with +Inf. */
function checkHistogram(name: string, { samples }: Family): void {
  const series = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le: _, ...others } = sample.labels;
    const key = JSON.stringify(others);
    series.set(key, [...(series.get(key) ?? []), sample]);
  }
  for (const [key, own] of series) {
    const buckets = own.filter((one) => one.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => (labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)));
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) fail(`${name} ${key} has no +Inf`);
    if (bounds.some((bound, i) => Number.isNaN(bound) || bound <= (bounds[i - 1] ?? -1))) fail(`bounds of ${key}`);
    const counts = buckets.map(({ value }) => value);
    if (counts.some((count, i) => count < (counts[i - 1] ?? 0))) fail(`${name} ${key} shrinks`);
    if (own.find((one) => one.name === `${name}_count`)?.value !== counts.at(-1)) fail(`count of ${key}`);
    if (own.find((one) => one.name === `${name}_sum`) === undefined) fail(`sum of ${key}`);
  }
}

function fail(text: string): never {
  throw new Error(text);
}
