import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { readPages } from "./pages.ts";
import type { ShellTerminal } from "./terminal.ts";
import { fits, stepsOf, type TranscriptStep } from "./transcripts.ts";

/** A block of a page for a shell: the typed commands, and the keys that are pressed while a command waits. */
export interface TypedBlock {
  readonly steps: readonly TranscriptStep[];
  /** The `<kbd>` of the text before the block, in order. */
  readonly keys: readonly string[];
  readonly line: number;
}

/** The blocks ```console and ```sh of a page, in order. A block ```sh is typed in one piece and prints nothing. */
export function readTypedBlocks(name: string): readonly TypedBlock[] {
  const page = readPages().find((other) => other.name === name);
  let after = 0;
  return (page?.blocks ?? []).flatMap(({ at, info, text }) => {
    const line = Number(at.split(":")[1]);
    const lines = text.trimEnd().split("\n");
    const prose = page?.prose.filter((prose) => prose.line > after && prose.line < line) ?? [];
    after = line + lines.length;
    if (info !== "console" && info !== "sh") return [];
    const keys = prose.flatMap((prose) => Array.from(prose.text.matchAll(/<kbd>(.*?)<\/kbd>/g), ([, key = ""]) => key));
    const steps =
      info === "sh"
        ? [{ command: text.trimEnd(), output: [], exitCode: 0, line: line + 1 }]
        : stepsOf(lines.map((text, index) => ({ text, line: line + 1 + index })));
    return [{ steps, keys, line }];
  });
}

/** Time limit of a command in milliseconds. */
const commandLimit = 420_000;
/** The pages' names of keys, with tmux's names. Other input is typed, followed by Enter. */
const keyNames: Readonly<Record<string, string>> = { Esc: "Escape", q: "q" };

/** Whether the screen asks for this input: the foot of a view names a key, a question is in the last line. */
function isDue(key: string, screen: string): boolean {
  const last = screen.trimEnd().split("\n").at(-1) ?? "";
  if (key === "Esc") return last.includes("Esc back");
  return key === "q" ? last.includes("q leaves") : /:$|⏎ answer/.test(last);
}

/** Types a page's blocks into a terminal's shell, and compares the output with the page. */
export class PageTypist {
  private readonly page: string;
  private readonly terminal: ShellTerminal;
  private readonly codes: string;

  /** `codes` is a file to which the shell's prompt appends the exit code of each command: see `promptCommand`. */
  constructor(page: string, terminal: ShellTerminal, codes: string) {
    this.page = page;
    this.terminal = terminal;
    this.codes = codes;
  }

  static promptCommand(codes: string): string {
    return `echo $? >>${codes}`;
  }

  async type({ steps, keys, line }: TypedBlock): Promise<void> {
    const left = [...keys];
    for (const step of steps) await this.follow(step, left);
    expect(left, `${this.page}:${line}: nothing waited for these keys`).to.deep.equal([]);
  }

  private async follow({ command, output, exitCode, line }: TranscriptStep, keys: string[]): Promise<void> {
    const before = (await this.ended()).length;
    const hasEnded = async () => (await this.ended()).length > before;
    // A new shell has no prompt yet, and would print it behind the typed text.
    for (const end = Date.now() + commandLimit; Date.now() < end; await sleep(50))
      if (/(^|\n)\$$/.test(await this.terminal.text())) break;
    await this.terminal.wipe();
    for (const text of command.split("\n")) await this.terminal.enter(text);
    let pressedAt = "";
    for (const end = Date.now() + commandLimit; !(await hasEnded()); await sleep(100)) {
      const screen = await this.terminal.screen();
      if (Date.now() > end) throw new Error(`${this.page}:${line}: $ ${command}\nhas not ended:\n${screen}`);
      const [key] = keys;
      // An input has to show before the next one: two questions in a row may look the same.
      if (key === undefined || screen === pressedAt || !isDue(key, screen)) continue;
      keys.shift();
      pressedAt = screen;
      await (key in keyNames ? this.terminal.press(keyNames[key] ?? key) : this.terminal.enter(key));
    }
    const echo = `$ ${command.replaceAll("\n", "\n> ")}\n`;
    let text = await this.terminal.text();
    // The prompt records the exit code, and appears a moment later.
    for (; !text.endsWith("\n$"); text = await this.terminal.text()) await sleep(50);
    const message = `${this.page}:${line}: the terminal shows\n${text}\ninstead of\n${echo}${output.join("\n")}\n`;
    expect(text.startsWith(echo), message).to.equal(true);
    expect(fits(text.slice(echo.length).replace(/\$$/, ""), output), message).to.equal(true);
    expect((await this.ended()).at(-1), message).to.equal(String(exitCode));
  }

  /** The exit codes of the commands that have ended. */
  private async ended(): Promise<readonly string[]> {
    return (await readFile(this.codes, "utf8")).split("\n").slice(0, -1);
  }
}
