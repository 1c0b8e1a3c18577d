/** The environment of a server's process: ours, less what is meant for Toolgate alone, plus what its configuration declares. */

function isOwn(name: string): boolean {
  return (
    name.startsWith('TOOLGATE_') ||
    name === 'BEARER_TOKEN' ||
    name === 'MANAGER_INTERNAL_TOKEN' ||
    name.startsWith('SECRETS_KEY')
  );
}

export function childEnvironment(
  declared: Readonly<Record<string, string>>,
  withheld: readonly string[] = [],
): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !isOwn(name) && !withheld.includes(name));
  return { ...Object.fromEntries(inherited), ...declared };
}
