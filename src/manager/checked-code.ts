/** What the source of a tool file shows, in both languages. */

/** A tool as its source shows it. */
export interface WrittenTool {
  readonly name: string;
  readonly description: string;
  readonly line: number;
}

export interface CodeProblem {
  readonly line: number;
  readonly message: string;
}

export interface CheckedCode {
  readonly tools: readonly WrittenTool[];
  readonly problems: readonly CodeProblem[];
  /** Whether it cannot be parsed. */
  readonly isBroken: boolean;
}
