import { expect } from "chai";
import { setTimeout as sleep } from "node:timers/promises";
import { FeedMember } from "#engine/feed/member.ts";
import type { FedNode } from "#engine/session/blob-feed.ts";
import type { Channel, Host } from "#engine/transport/host.ts";
import { nodeEntry } from "#support/runs.ts";

const nonce = "f".repeat(32);
const content = { name: "a.b", size: 5000, sha256: "0".repeat(64) };

/** A node that answers each line that it is told by these lines. */
function nodeThat(answer: (line: string) => AsyncIterable<string> | readonly string[]): {
  readonly party: FedNode;
  readonly isClosed: () => boolean;
} {
  const told: string[] = [];
  let wake = Promise.withResolvers<void>();
  let isClosed = false;
  const close = (): void => {
    isClosed = true;
    wake.resolve();
  };
  const channel: Channel = {
    stdout: (async function* (): AsyncGenerator<Buffer> {
      yield Buffer.from(`${nonce} hello\n`);
      while (!isClosed) {
        for (let line = told.shift(); line !== undefined; line = told.shift()) {
          if (line === "bye") return;
          for await (const said of answer(line)) {
            if (isClosed) return;
            yield Buffer.from(`${nonce} ${said}\n`);
          }
        }
        await wake.promise;
        wake = Promise.withResolvers();
      }
    })(),
    write: (text) => {
      told.push(...String(text).trimEnd().split("\n"));
      wake.resolve();
      return Promise.resolve();
    },
    taken: () => 0,
    end: () => undefined,
    exit: Promise.resolve({}),
    close,
    stderrTail: () => "",
  };
  const host = { name: "n1", exec: () => Promise.resolve(channel) } as unknown as Host;
  const { address, port, user } = nodeEntry("n1", {});
  return {
    isClosed: () => isClosed,
    party: {
      node: "n1",
      host,
      endpoint: { name: "n1", transport: "ssh", address, port, user, hostKeys: [], jump: [] },
      run: { nonce, stateDir: "/s", runId: "r", who: "w", node: "n1", dryRun: false, grants: [], login: "root" },
      sudoPassword: () => Promise.resolve(undefined),
      emit: () => undefined,
    },
  };
}

describe("a node's part in the feeding, as the bastion sees it", () => {
  it("is done, or is refused in the node's words", async () => {
    const { party } = nodeThat((line) => (line.startsWith("keep 1 ") ? ["1 at 5000", "1 yes"] : ["2 no it is full"]));
    const member = new FeedMember(party);
    expect(await Promise.all([member.keep(content), member.keep(content)])).to.deep.equal([undefined, "it is full"]);
    expect(member.isOver).to.equal(false);
    await member.close();
    expect(member.isOver).to.equal(true);
    expect(await member.keep(content)).to.equal("its connection ended");
  });

  it("is given up when nothing moves, also of a node that says that it goes on", async () => {
    const { party, isClosed } = nodeThat(async function* () {
      yield "1 at 1000";
      for (;;) {
        yield "1 at 1000";
        await sleep(1);
      }
    });
    const member = new FeedMember(party, 20);
    expect(await member.keep(content)).to.equal("it got no further for 0 s");
    expect([member.isOver, isClosed()]).to.deep.equal([true, true]);
  });

  it("is given up when the node says more than there is to say", async () => {
    const { party, isClosed } = nodeThat(function* () {
      for (;;) yield `9 ${"x".repeat(100_000)}`;
    } as unknown as () => readonly string[]);
    const member = new FeedMember(party);
    expect(await member.keep(content)).to.match(/^n1 sent more about its steps than they can tell/);
    expect([member.isOver, isClosed()]).to.deep.equal([true, true]);
  });
});
