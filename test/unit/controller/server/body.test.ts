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

  it("S-17: of all that are not answered yet share one room, and who finds none is told when to ask again", async () => {
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
});
