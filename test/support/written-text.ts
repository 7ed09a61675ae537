import { Writable } from "node:stream";

/** A stream, and a function that takes the text that was written to it. */
export function writtenText(): { readonly out: NodeJS.WriteStream; readonly take: () => string } {
  let text = "";
  const out = new Writable({
    write: (chunk: Buffer, _, done) => {
      text += chunk.toString();
      done();
    },
  }) as unknown as NodeJS.WriteStream;
  return {
    out,
    /** The text since the last call. */
    take() {
      const taken = text;
      text = "";
      return taken;
    },
  };
}
