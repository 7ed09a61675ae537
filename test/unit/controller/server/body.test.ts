import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { expect } from "chai";
import { Busy } from "#controller/cluster/refused.ts";
import { openBodyRoom, readJson, type BodyRoom } from "#controller/server/body.ts";

describe("the bodies of requests", () => {
  const request = (): PassThrough & { headers: object; complete: boolean } =>
    Object.assign(new PassThrough(), { headers: {}, complete: true });
  const read = (body: PassThrough, room: BodyRoom): Promise<unknown> =>
    readJson(body as unknown as IncomingMessage, room).catch((error: unknown) => error);

  it("S-17: share a bounded memory until they are answered, and are refused with 503 without room", async () => {
    const room = openBodyRoom(1_000);
    const [first, second, third] = [request(), request(), request()];
    const answers = [first, second].map((each) => read(each, room));
    first.end(JSON.stringify("a".repeat(600)));
    expect(await answers[0]).to.equal("a".repeat(600));
    second.write('"'.padEnd(500, "b"));
    const refused = await answers[1];
    expect(refused).to.be.instanceOf(Busy);
    expect(refused).to.include({ status: 503, code: "API_BUSY" });
    room.release(second);
    room.release(first);
    third.end(JSON.stringify("c".repeat(900)));
    expect(await read(third, room)).to.equal("c".repeat(900));
  });

  it("S-17: are refused if too large, no JSON, or nested too deeply", async () => {
    const answerTo = (text: string): Promise<unknown> => {
      const body = request();
      body.end(text);
      return read(body, openBodyRoom());
    };
    expect(await answerTo("[".repeat(32) + "]".repeat(32))).to.be.an("array");
    for (const text of ["[".repeat(33) + "]".repeat(33), "[".repeat(100_000), "nonsense"])
      expect(await answerTo(text)).to.include({ status: 400, code: "API_INVALID" });
    expect(await answerTo(`"${"x".repeat(2_000_000)}"`)).to.include({ status: 413, code: "API_INVALID" });
  });
});
