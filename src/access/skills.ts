/**
 * The skills that a caller sees: those whose SKILL.md it may read. They are listed under their servers' own URIs, which
 * files of skills and results contain too. If several servers have a URI, each has its namespace in its scheme: no server
 * can take a skill over.
 */
import { GatewayError } from '../base/errors.ts';
import { memo } from '../base/memo.ts';
import type { Entry } from '../catalog/entry.ts';
import { skillOf, withPrefix } from '../catalog/skills.ts';
import { listedUri } from '../catalog/uris.ts';
import { type FoundResource, findResource, usableTemplates } from './find.ts';
import type { View } from './view.ts';

/** From the URI of each skill to its entry, as JSON. */
export const skillsIn: (view: View) => ReadonlyMap<string, Buffer> = memo((view: View) => {
  const skills = new Map<string, Buffer>();
  for (const [name, template] of usableTemplates(view)) {
    const skill = skillOf(template.item);
    if (skill === null) continue;
    if (means(view, skill.uri, template)) {
      skills.set(skill.uri, skill.entry);
      continue;
    }
    // Hosts refuse every skill of a list in which one URI is not legal.
    const listed = listedUri({ catalog: view.catalog, uriStyle: 'scheme' }, name, template);
    const prefix = listed?.slice(0, -template.item.name.length) ?? '';
    const uri = prefix + skill.uri;
    if (prefix !== '' && means(view, uri, template)) skills.set(uri, withPrefix(skill, prefix));
  }
  return skills;
});

/** Whether the caller reads that URI from the server of the template. */
function means(view: View, uri: string, template: Entry): boolean {
  try {
    return findResource(view, uri).entry.sourceId === template.sourceId;
  } catch (error) {
    if (error instanceof GatewayError) return false;
    throw error;
  }
}

/** The directory of a skill. `namedBy` is the source whose result had the URI, if that is known. */
export function findDirectory(view: View, uri: string, namedBy?: number): FoundResource {
  // Its files are what the template makes and what policies name, so it counts as one with an empty name.
  const slash = uri.endsWith('/') ? '' : '/';
  try {
    const { entry, upstreamName } = findResource(view, uri + slash, namedBy);
    if (hasSkills(view, entry.sourceId))
      return { entry, upstreamName: slash === '' ? upstreamName : `${upstreamName.slice(0, -2)}"` };
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'resource_unknown') throw error;
  }
  throw new GatewayError('params_invalid', `"${uri}" is no directory of a skill. skills/list has the skills.`);
}

/** Only a server with skills knows what a directory is. */
function hasSkills(view: View, sourceId: number): boolean {
  for (const [, entry] of usableTemplates(view))
    if (entry.sourceId === sourceId && skillOf(entry.item) !== null) return true;
  return false;
}
