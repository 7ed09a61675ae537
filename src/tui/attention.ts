/** Sequences that call the operator to a terminal: the bell and a title, restored after the last question (xterm, “window operations” 22 and 23). */
export const attention = {
  call: "\u001b[22;2t\u001b]2;kcore: waiting for you\u0007\u0007",
  /** For a further question while the title stands. */
  again: "\u0007",
  over: "\u001b[23;2t",
} as const;

/** Whether a terminal knows titles; the Linux console would print the sequence as text. */
export function knowsTitles(env: Readonly<Record<string, string | undefined>>): boolean {
  return env["TERM"] !== "linux" && env["TERM"] !== "dumb";
}

/** A function that takes the number of open questions, and calls the operator when the number rises. */
export function calling(write: (text: string) => void, hasTitles: boolean): (open: number) => void {
  let before = 0;
  return (open) => {
    if (open > before) write(before === 0 && hasTitles ? attention.call : attention.again);
    if (open === 0 && before > 0 && hasTitles) write(attention.over);
    before = open;
  };
}
