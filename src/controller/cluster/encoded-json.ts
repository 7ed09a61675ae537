/** A value that is JSON already: a register's text is sent as it stands, without being parsed on the way. */
export class EncodedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
