import { expect } from "chai";
import type { TransitionContext } from "#engine/session/session-events.ts";
import { nodeLocked, refusalHint } from "#engine/session/problems.ts";
import { runnerFrameTransition } from "#engine/session/runner-frames.ts";
import { noRunner } from "#engine/session/runner-state.ts";

describe("nodeLocked", () => {
  it("hints at complete commands", () => {
    const { message, hint } = nodeLocked("n1", "12:345:boot:20261121-065724-2580:root@vm", "0");
    expect(message).to.equal("n1 is in use by run 20261121-065724-2580 of root@vm since 1970-01-01T00:00:00.000Z");
    expect(hint).to.match(
      /: kcore runs attach 20261121-065724-2580; .*: kcore runs resume 20261121-065724-2580, or kcore runs abort 20261121-065724-2580$/,
    );
  });

  it("omits an invalid time", () =>
    expect(nodeLocked("n1", "?:?:?:?:a", "race").message).to.equal("n1 is in use by run ? of a"));
});

describe("refusalHint", () => {
  it("suggests `enabled: keep` for a unit without [Install]", () =>
    expect(refusalHint({ code: "UNIT_STATIC", message: "x has no [Install] section" }, "service.running")).to.contain(
      "enabled: keep",
    ));

  it("suggests an owner for a service user's folder where the module has one, else chown or chmod", () => {
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

  it("names the further condition under which an owner helps", () => {
    const hint = (module: string) =>
      refusalHint({ code: "FILE_PARENT_UNSAFE", message: "", detail: "/srv/www belongs to www-data" }, module);
    const owner = "give the step “owner: www-data”; else on the node: chown root /srv/www";
    expect(hint("file.downloaded")).to.equal(`if the folder is meant to be www-data's, ${owner}`);
    expect(hint("archive.extracted")).to.equal(
      `if the folder is meant to be www-data's, and the step unpacks into it, ${owner}`,
    );
    for (const module of ["file.block", "file.line"])
      expect(hint(module)).to.equal(
        `if the folder is meant to be www-data's, and the file does not exist yet, ${owner}`,
      );
  });
});

describe("the warning of a lock that is taken over", () => {
  const effectsOf = (holder: string) =>
    runnerFrameTransition(noRunner, { type: "lock", rest: `taken-over 12:345:boot:${holder}:root@vm` }, 0, {
      node: "n1",
      runId: "own",
    } as TransitionContext).effects;

  it("names the dead run, or this run's own dead runner", () => {
    const text = (holder: string) => effectsOf(holder).map((effect) => "event" in effect && effect.event);
    expect(text("other")).to.deep.equal([
      { type: "warning", node: "n1", text: "took the lock over from a dead run (other of root@vm)" },
    ]);
    expect(text("own")).to.deep.equal([
      { type: "warning", node: "n1", text: "took the lock over from this run's own runner, which had died" },
    ]);
  });
});
