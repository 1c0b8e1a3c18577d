/** Many clients that use the same ids at the same time, and answer, decline, stay silent, cancel, drop and vanish. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/random.ts';
import { UPSTREAMS } from '../support/soak-servers.ts';
import { type Kind, openModern, openSession, openSse, type WordClient } from './clients.ts';
import { type Answering, count, type Findings, type Plan } from './word.ts';

/** The clock of all clients: at each tick every idle client makes a call, with the number of the tick as its id. */
const TICK = 250;
/** The longest wait for the end of a call: `total_timeout` of the servers, and some time for a busy machine. */
export const BOUND = 30_000;
/** How many clients without a session leave questions unanswered. Each occupies one of eight places for two minutes. */
const SILENT = 4;
const SILENT_FOR = 8_000;

const KINDS: readonly Kind[] = ['session', 'session', 'sse', 'modern', 'modern'];

export interface Crowd {
  readonly clients: number;
  readonly ids: number;
}

export async function gather(
  origin: string,
  clients: number,
  ms: number,
  findings: Findings,
  random: Random,
): Promise<Crowd> {
  let started = 0;
  let silent = 0;
  const open = async (kind: Kind, isAskable: boolean): Promise<WordClient> => {
    const options = { name: `c${++started}`, origin, isAskable, findings };
    if (kind === 'modern') return openModern(options);
    return kind === 'sse' ? openSse(options) : openSession(options);
  };
  const seats = Array.from({ length: clients }, (_, seat) => ({
    kind: KINDS[seat % KINDS.length]!,
    isAskable: Math.floor(seat / KINDS.length) % 2 === 0,
  }));
  const first = await Promise.all(seats.map(({ kind, isAskable }) => open(kind, isAskable)));
  const start = performance.now();
  const tick = () => Math.floor((performance.now() - start) / TICK) + 1;

  function plan(client: WordClient, id: number): Plan {
    const upstream = random.pick(UPSTREAMS);
    const tool = random.chance(client.isAskable ? 0.75 : 0.15) ? 'ask' : 'say';
    const about = random.chance(0.2) ? 'sampling' : 'elicitation';
    const args =
      tool === 'say'
        ? { steps: random.number(4), after: random.number(400) }
        : { questions: 1 + random.number(2), about, after: random.number(80), stubborn: random.chance(0.3) };
    const endings: Record<Kind, Plan['then'][]> = {
      session: ['cancel', 'drop', 'return', 'vanish'],
      sse: ['cancel', 'vanish'],
      modern: ['drop', 'vanish'],
    };
    const then = random.chance(0.2) ? random.pick(endings[client.kind]) : 'wait';
    const answering = tool === 'ask' && client.isAskable ? chooseAnswering(client, about) : 'accept';
    return { id, upstream, tool, args, answering, then, after: random.number(300) };
  }

  function chooseAnswering({ kind }: WordClient, about: string): Answering {
    if (random.chance(0.75)) return 'accept';
    if (kind !== 'modern') return random.pick(['decline', 'error', 'never']);
    if (silent < SILENT && performance.now() - start < SILENT_FOR && random.chance(0.5)) {
      silent++;
      return 'never';
    }
    // Such a client can only answer that its user declined, not with an error.
    return about === 'elicitation' ? 'decline' : 'accept';
  }

  async function sit(client: WordClient, kind: Kind): Promise<void> {
    let last = 0;
    let current = client;
    while (performance.now() - start < ms) {
      if (tick() === last) {
        await sleep(TICK - ((performance.now() - start) % TICK));
        continue;
      }
      last = tick();
      const next = plan(current, last);
      count(findings, 'calls');
      const isOver = await Promise.race([current.call(next).then(() => true), sleep(BOUND, false, { ref: false })]);
      if (!isOver) findings.broken.push(`${JSON.stringify(next)}: not over after ${BOUND} ms`);
      if (next.then !== 'vanish') continue;
      await current.leave('dropping');
      current = await open(kind, client.isAskable);
      last = tick();
    }
    await current.leave(random.chance(0.5) ? 'politely' : 'dropping');
  }

  await Promise.all(first.map((client, seat) => sit(client, seats[seat]!.kind)));
  return { clients: started, ids: tick() - 1 };
}
