/** Random policies, and requests in random spellings, at every door. The oracle is in `spelled-requests.ts`. */
import { describe, it } from 'vitest';
import { DOORS } from '../support/asking.ts';
import { isMissing } from '../support/needs.ts';
import { useSpelledRequests } from '../support/spelled-requests.ts';
import { isWide, runs } from '../support/wide.ts';

const LONG = { timeout: 600_000 };

describe('however it is spelled, nothing that a policy denies reaches a server', () => {
  describe('at the doors of clients', () => {
    const requests = useSpelledRequests(DOORS);
    it('of every kind', LONG, () => requests.reachOnlyWhatIsAllowed(runs(100)));
  });

  describe('by ways around the list of tools', () => {
    const requests = useSpelledRequests(['page', 'call_tool'], { controls: ['search'] });
    it('from the dashboard in the name of an agent, and with call_tool', LONG, () =>
      requests.reachOnlyWhatIsAllowed(runs(60)),
    );
  });

  describe.skipIf(!isWide || isMissing('redis'))('on another replica than the one that has the session', () => {
    const requests = useSpelledRequests(['replica']);
    it('of a client with a session', LONG, () => requests.reachOnlyWhatIsAllowed(runs(40)));
  });
});
