/** One thing that `toolgate doctor` has to say. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'broken';
  readonly about: string;
  readonly message: string;
  /** The end of what a server wrote to its standard error. */
  readonly stderr?: string;
}
