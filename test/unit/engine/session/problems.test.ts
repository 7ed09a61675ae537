import { expect } from "chai";
import type { TransitionContext } from "#engine/session/session-events.ts";
import { nodeLocked, refusalHint } from "#engine/session/problems.ts";
import { runnerFrameTransition } from "#engine/session/runner-frames.ts";
import { noRunner } from "#engine/session/runner-state.ts";

describe("what is told of a node that another run holds", () => {
  it("prints commands that run as they stand", () => {
    const { message, hint } = nodeLocked("n1", "12:345:boot:20261121-065724-2580:root@vm", "0");
    expect(message).to.equal("n1 is in use by run 20261121-065724-2580 of root@vm since 1970-01-01T00:00:00.000Z");
    expect(hint).to.match(
      /: kcore runs attach 20261121-065724-2580; .*: kcore runs resume 20261121-065724-2580, or kcore runs abort 20261121-065724-2580$/,
    );
  });

  it("O15: says nothing of a time that is none", () =>
    expect(nodeLocked("n1", "?:?:?:?:a", "race").message).to.equal("n1 is in use by run ? of a"));
});

describe("the hint to a refusal", () => {
  it("keeps a unit without [Install] running without enabling it", () =>
    expect(refusalHint({ code: "UNIT_STATIC", message: "x has no [Install] section" }, "service.running")).to.contain(
      "enabled: keep",
    ));

  it("writes into a service user's folder as that user, where the module can", () => {
    const message = "a folder above /srv/www/index.html could be swapped by another user";
    const hint = (detail: string, module: string) =>
      refusalHint({ code: "FILE_PARENT_UNSAFE", message, detail }, module);
    expect(hint("/srv/www belongs to www-data", "file.managed")).to.equal(
      "if the folder is meant to be www-data's, give the step “owner: www-data”; else on the node: chown root /srv/www",
    );
    expect(hint("/srv/www belongs to www-data", "symlink.managed")).to.equal("on the node: chown root /srv/www");
    expect(hint("/srv is writable for others", "file.managed")).to.equal("on the node: chmod go-w /srv");
    const both = "/srv belongs to a\n/srv/x belongs to b\n/srv/x is writable for others";
    const chown = "chown root /srv; chown root /srv/x; chmod go-w /srv/x";
    expect(hint(both, "file.managed")).to.equal(`on the node: ${chown}`);
  });
});

describe("a lock that is taken over", () => {
  const told = (holder: string) =>
    runnerFrameTransition(noRunner, { type: "lock", rest: `taken-over 12:345:boot:${holder}:root@vm` }, 0, {
      node: "n1",
      runId: "own",
    } as TransitionContext).effects;

  it("is told as what it is: another run's, or our own after a kill", () => {
    const text = (holder: string) => told(holder).map((effect) => "event" in effect && effect.event);
    expect(text("other")).to.deep.equal([
      { type: "warning", node: "n1", text: "took the lock over from a dead run (other of root@vm)" },
    ]);
    expect(text("own")).to.deep.equal([
      { type: "warning", node: "n1", text: "took the lock over from this run's own runner, which had died" },
    ]);
  });
});
