import { Writable } from "node:stream";

/** A stream that keeps the text written to it. */
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
    /** The text written since the last call. */
    take() {
      const taken = text;
      text = "";
      return taken;
    },
  };
}
