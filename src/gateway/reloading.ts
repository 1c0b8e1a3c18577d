/** Looking at everything again when somebody says so: the configuration, folders of tools, secrets. */

export interface Reloading {
  /** What is to be looked at again; gives the function that ends that. */
  add(look: () => Promise<void>): () => void;
  /** Resolves when all has been looked at, and what follows from it has begun. */
  run(): Promise<void>;
}

export function createReloading(): Reloading {
  const looks = new Set<() => Promise<void>>();
  return {
    add(look) {
      looks.add(look);
      return () => looks.delete(look);
    },
    // In the order in which they came: folders go by the configuration that is in force then.
    async run() {
      for (const look of looks) await look();
    },
  };
}
