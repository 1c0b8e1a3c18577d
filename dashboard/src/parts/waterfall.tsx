/** The steps of a call, one under the other along the time it took. */
import { duration } from '../format.ts';

export interface FallStep {
  readonly name: string;
  /** Milliseconds since the beginning of the call. */
  readonly from: number;
  readonly ms: number;
  readonly bad?: boolean;
}

export function Waterfall({ steps, total }: { steps: readonly FallStep[]; total: number }) {
  const whole = Math.max(total, ...steps.map(({ from, ms }) => from + ms), 0.001);
  return (
    <ol class="fall" aria-label="Steps of the call">
      {steps.map(({ name, from, ms, bad }, index) => (
        <li key={index}>
          <span class="clip" title={name}>
            {name}
          </span>
          <span class="track" aria-hidden="true">
            <span
              class={`bar ${bad ? 'bad' : ''}`}
              style={{ left: `${(from / whole) * 100}%`, width: `${Math.max(0.4, (ms / whole) * 100)}%` }}
            />
          </span>
          <span class="num">{duration(ms)}</span>
        </li>
      ))}
    </ol>
  );
}
