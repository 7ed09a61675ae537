/** Where in a shell text something stands: an expression may stand where a word can, and there only. */
export type Quoting = "word" | "in quotes" | "in a here-document" | "in a comment";

/**
 * Follows a POSIX shell text (XCU 2.2, 2.3, 2.7.4) as far as to tell where its words are. It knows quotes, command substitution within
 * them, comments and here-documents; what it does not know is a word.
 */
export class QuotingScanner {
  /** The innermost last: `"`, `'`, `$(` or `` ` ``. */
  readonly #open: string[] = [];
  #isComment = false;
  /** Delimiters of here-documents that begin with the next line. */
  readonly #announced: string[] = [];
  #document: string | undefined;
  #line = "";
  #last = " ";

  get state(): Quoting {
    if (this.#document !== undefined) return "in a here-document";
    if (this.#isComment) return "in a comment";
    return ["'", '"'].includes(this.#open.at(-1) ?? "") ? "in quotes" : "word";
  }

  /** Goes on through a piece of the text. */
  feed(text: string): void {
    for (let at = 0; at < text.length;) at += this.#step(text, at);
  }

  /** A word that is not known stands here. */
  feedWord(): void {
    this.#last = "x";
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
    const inner = this.#open.at(-1);
    if (char === "\\") return 2;
    if (text.startsWith("$(", at)) {
      this.#open.push("$(");
      return 2;
    }
    if (char === '"' || char === "`") return this.#toggle(char);
    if (inner === '"') return 1;
    if (char === "'") {
      this.#open.push("'");
      return 1;
    }
    if (char === ")" && inner === "$(") this.#open.pop();
    if (char === "(" && inner === "$(") this.#open.push("$(");
    if (char === "#" && /[\s;&|(]/.test(this.#last)) this.#isComment = true;
    const document = /^<<-?[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([\w.]+))/.exec(text.slice(at));
    if (document === null) return 1;
    this.#announced.push(document[1] ?? document[2] ?? document[3] ?? "");
    return document[0].length;
  }

  #toggle(char: string): number {
    if (this.#open.at(-1) === char) this.#open.pop();
    else this.#open.push(char);
    return 1;
  }
}
