/** Where in a shell text something stands: an expression may stand where a word can, and there only. */
export type Quoting =
  "word" | "in quotes" | "in back quotes" | "in an arithmetic expansion" | "in a here-document" | "in a comment";

/** What is open, the innermost last. Within `$(` quotes begin anew; within `${` they do not. */
type Opened = '"' | "'" | "`" | "$(" | "$((" | "${" | "(";

/**
 * Follows a POSIX shell text (XCU 2.2, 2.3, 2.6, 2.7.4) as far as to tell where its words are. It knows quotes, expansions,
 * comments and here-documents; what it does not know is a word.
 */
export class QuotingScanner {
  readonly #open: Opened[] = [];
  #isComment = false;
  /** Delimiters of here-documents that begin with the next line. */
  readonly #announced: string[] = [];
  #document: string | undefined;
  #line = "";
  #last = " ";

  get state(): Quoting {
    if (this.#document !== undefined) return "in a here-document";
    if (this.#isComment) return "in a comment";
    // A back quote ends them wherever it stands, and an arithmetic expansion is read as if in double quotes.
    if (this.#open.includes("`")) return "in back quotes";
    if (this.#inner().includes("$((")) return "in an arithmetic expansion";
    return this.#isQuoted() ? "in quotes" : "word";
  }

  /** What is open here; two places with the same are read alike. */
  get context(): string {
    return [...this.#open, this.#isComment ? "#" : "", this.#document ?? "", ...this.#announced].join(" ");
  }

  /** Goes on through a piece of the text. */
  feed(text: string): void {
    for (let at = 0; at < text.length;) at += this.#step(text, at);
  }

  /** A word that is not known stands here. */
  feedWord(): void {
    this.#last = "x";
  }

  #inner(): readonly Opened[] {
    return this.#open.slice(this.#open.lastIndexOf("$(") + 1);
  }

  #isQuoted(): boolean {
    const inner = this.#inner();
    return inner.includes('"') || inner.includes("'");
  }

  /** Takes what stands at `at`; how many characters. */
  #step(text: string, at: number): number {
    const char = text[at] ?? "";
    if (char === "\n") return this.#endLine();
    if (this.#document !== undefined) {
      this.#line += char;
      return 1;
    }
    if (this.#isComment) return 1;
    const taken = this.#open.at(-1) === "'" ? this.#inSingle(char) : this.#outside(text, at, char);
    this.#last = text[at + taken - 1] ?? "";
    return taken;
  }

  #endLine(): number {
    if (this.#document !== undefined && this.#line.replace(/^\t+/, "") === this.#document) this.#document = undefined;
    if (this.#document === undefined) this.#document = this.#announced.shift();
    this.#line = "";
    this.#isComment = false;
    this.#last = "\n";
    return 1;
  }

  #inSingle(char: string): number {
    if (char === "'") this.#open.pop();
    return 1;
  }

  #outside(text: string, at: number, char: string): number {
    if (char === "\\") return 2;
    const opening = (["$((", "$(", "${"] as const).find((one) => text.startsWith(one, at));
    if (opening !== undefined) {
      this.#open.push(opening);
      return opening.length;
    }
    if (char === '"' || char === "`") return this.#toggle(char);
    const closing = this.#close(text, at, char);
    if (closing > 0) return closing;
    if (this.#isQuoted()) return 1;
    if (char === "'") {
      this.#open.push("'");
      return 1;
    }
    if (char === "(" && this.#open.length > 0) this.#open.push("(");
    if (char === "#" && /[\s;&|(]/.test(this.#last) && this.#open.at(-1) !== "${") this.#isComment = true;
    const document = /^<<-?[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([\w.]+))/.exec(text.slice(at));
    if (document === null) return 1;
    this.#announced.push(document[1] ?? document[2] ?? document[3] ?? "");
    return document[0].length;
  }

  /** How many characters end what is open innermost; 0: none. */
  #close(text: string, at: number, char: string): number {
    const inner = this.#open.at(-1);
    const isEnd =
      (inner === "$((" && text.startsWith("))", at)) ||
      ((inner === "$(" || inner === "(") && char === ")") ||
      (inner === "${" && char === "}");
    if (!isEnd) return 0;
    this.#open.pop();
    return inner === "$((" ? 2 : 1;
  }

  #toggle(char: '"' | "`"): number {
    if (this.#open.at(-1) === char) this.#open.pop();
    else this.#open.push(char);
    return 1;
  }
}
