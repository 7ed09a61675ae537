/** A value that is JSON text already: an answer sends a register's text without parsing it. */
export class EncodedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
