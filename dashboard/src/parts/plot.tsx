/** Lines or bars over time, drawn by uPlot. What they say stands in the legend, in words and numbers. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { colour, colours } from '../theme.ts';

export interface Series {
  readonly name: string;
  /** A colour of the style, such as `accent`. */
  readonly colour: string;
  readonly fill?: boolean;
  readonly bars?: boolean;
}

interface Properties {
  readonly label: string;
  readonly series: readonly Series[];
  /** Seconds since 1970, and the values of each series. The line passes over `undefined`, and is broken by null. */
  readonly data: readonly (readonly (number | null | undefined)[])[];
  readonly format: (value: number) => string;
  readonly height?: number;
  /** A point in time, in seconds, as the axis shows it. */
  readonly at: (seconds: number) => string;
}

/** The time between two points. */
function gap(plot: uPlot): number {
  const [first = 0, second = first] = plot.data[0];
  return second - first;
}

/** Bars are named where they stand, and as many of them as there is room for. */
function someOf(plot: uPlot): number[] {
  const points = [...plot.data[0]];
  const step = Math.max(1, Math.ceil(points.length / Math.max(1, Math.floor(plot.width / 90))));
  return points.filter((_, index) => (points.length - 1 - index) % step === 0);
}

export function Plot({ label, series, data, format, at, height = 140 }: Properties) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const painted = colours.value;
  const shape = JSON.stringify(series);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const line = colour('line');
    const axis = {
      stroke: colour('muted'),
      font: '11px system-ui, sans-serif',
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1, size: 4 },
    };
    const made = new uPlot(
      {
        width: element.clientWidth || 300,
        height,
        // At the right half of a label fits, which stands under its line.
        padding: [8, 26, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          // Half a bar at each end, so that none is cut.
          ...(series.some(({ bars }) => bars) && {
            x: { range: (self, low, high) => [low - gap(self) / 2, high + gap(self) / 2] },
          }),
          y: { range: (_self, _low, high) => [0, Math.max((high || 0) * 1.15, 1)] },
        },
        axes: [
          {
            ...axis,
            space: 70,
            size: 26,
            values: (_self, ticks) => ticks.map(at),
            ...(series.some(({ bars }) => bars) && { splits: someOf, grid: { show: false }, ticks: { show: false } }),
          },
          { ...axis, size: 58, space: 26, values: (_self, ticks) => ticks.map(format) },
        ],
        series: [
          {},
          ...series.map(({ name, colour: tone, fill, bars }) => ({
            label: name,
            stroke: colour(tone),
            width: 1.5,
            points: { show: false },
            ...(fill && { fill: colour(`${tone}-soft`) }),
            ...(bars && {
              fill: colour(tone),
              width: 0,
              ...(uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.7, 28], radius: 0.1 }) }),
            }),
          })),
        ],
      },
      data as unknown as uPlot.AlignedData,
      element,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height });
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, painted, height]);

  useEffect(() => {
    plot.current?.setData(data as unknown as uPlot.AlignedData);
  }, [data]);

  return (
    <figure class="stack tight">
      <div class="plot" ref={box} role="img" aria-label={label} style={{ height: `${height}px` }} />
      <figcaption>
        <ul class="legend">
          {series.map(({ name, colour: tone }, index) => {
            const values = data[index + 1] ?? [];
            const last = values.findLast((value) => value !== null && value !== undefined);
            return (
              <li key={name}>
                <span class="swatch" aria-hidden="true" style={{ background: `var(--${tone})` }} />
                {name} <b>{last === undefined || last === null ? '–' : format(last)}</b>
              </li>
            );
          })}
        </ul>
      </figcaption>
    </figure>
  );
}
