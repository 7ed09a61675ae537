import { Secret } from "#engine/step/secret.ts";
import { describeValue } from "#engine/yaml/node.ts";
import type { CallExpression } from "./ast.ts";
import { Fault } from "./fault.ts";
import { scalarText } from "./helper.ts";

/** Receives the parts of a template's result in order. */
export interface Sink {
  /** A text of the template itself. */
  text(part: string): void;
  /** The value of an expression, and the expression. @throws Fault for a value that cannot stand there */
  value(value: unknown, call: CallExpression): void;
}

/** Collects text; remembers whether a secret went in. */
export class TextOutput implements Sink {
  #text = "";
  #isSecret = false;

  text(part: string): void {
    this.#text += part;
  }

  value(value: unknown): void {
    const part = printable(value);
    if (part instanceof Secret) this.#isSecret = true;
    this.#text += part instanceof Secret ? part.reveal() : part;
  }

  result(indent = ""): string | Secret {
    const text = indent === "" ? this.#text : this.#text.replaceAll(/^(?=.)/gm, indent);
    return this.#isSecret ? new Secret(text) : text;
  }
}

/** A value as a part of a text. @throws Fault for a list, a map or null */
function printable(value: unknown): string | Secret {
  if (value instanceof Secret) return value;
  const text = scalarText(value);
  if (text !== undefined) return text;
  throw new Fault(`${describeValue(value)} cannot be put into a text`, {
    hint: value === null ? "default x 'y' gives another value for nothing" : "use join, json or yaml",
  });
}
