/** One session: who it is, what it has switched on, and another toolset for it. */
import { useState } from 'preact/hooks';
import type { SessionRow, ToolsetsReport } from '../../../src/dashboard/api-types.ts';
import { get, post } from '../api.ts';
import { compact, dateTime, number } from '../format.ts';
import { useLoad } from '../load.ts';
import { Facts } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { attempt } from '../parts/toast.tsx';

export function SessionSheet({ row, close }: { row: SessionRow; close: () => void }) {
  const { value } = useLoad<ToolsetsReport>((signal) => get('toolsets', {}, signal), []);
  const [chosen, setChosen] = useState('');
  const equip = async (name: string | null) => {
    const done = await attempt(
      () => post('commands/toolsets-equip', { name, who: { session: row.id } }),
      name === null ? 'It has no toolset equipped now.' : `${name} is equipped for this session.`,
    );
    if (done !== undefined) close();
  };
  return (
    <Dialog title={`Session of ${row.agent}`} close={close}>
      <Facts
        rows={[
          ['Client', [row.client, row.version].filter(Boolean).join(' ') || 'unnamed'],
          ['Door', row.door],
          ['Protocol', row.revision],
          ['Since', dateTime(row.since)],
          ['Sees', `${number(row.tools)} tools, about ${compact(row.tokens)} tokens`],
          ['Namespace', row.namespace],
          ['Toolset', row.toolset],
          ['Enabled', row.enabled.join(', ')],
          ['Activated', row.activated.join(', ')],
          ['Deactivated', row.deactivated.join(', ')],
        ]}
      />
      {value?.canEquip ? (
        <form
          class="line"
          onSubmit={(event) => {
            event.preventDefault();
            void equip(chosen);
          }}
        >
          <select
            class="input"
            aria-label="Toolset for this session"
            value={chosen}
            onChange={(event) => setChosen(event.currentTarget.value)}
          >
            <option value="">choose a toolset</option>
            {value.toolsets.map(({ name, tokens }) => (
              <option key={name} value={name}>
                {name} ({compact(tokens)} tokens)
              </option>
            ))}
          </select>
          <button type="submit" class="button primary" disabled={chosen === ''}>
            Equip
          </button>
          {row.toolset ? (
            <button type="button" class="button" onClick={() => void equip(null)}>
              Take it off
            </button>
          ) : null}
        </form>
      ) : null}
    </Dialog>
  );
}
