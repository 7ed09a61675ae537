/** A value that is JSON already: what a register holds is sent as it stands, and parsed by nobody on the way. */
export class EncodedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
