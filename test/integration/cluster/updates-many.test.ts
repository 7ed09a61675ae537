import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { eventually } from "#support/cluster.ts";
import type { TestController } from "#support/controllers.ts";
import { kcoreProgram } from "#support/deploy.ts";
import type { Answer } from "#support/rollout-nodes.ts";
import { UpdateSite } from "#support/update-site.ts";

const count = 200;
const maxUnavailable = 20;

describe("an update of 200 nodes", () => {
  let site: UpdateSite;
  const held = Promise.withResolvers<Answer>();
  let underWay = 0;
  let most = 0;

  before(async () => {
    const carryOut = (hostname: string) => async (step: string) => {
      if (step !== "activate") return { ok: true } as const;
      most = Math.max(most, ++underWay);
      // It takes its time; the last one as long as a screen is looked at.
      await sleep(100);
      const answer = hostname === `n${count}` ? await held.promise : ({ ok: true } as const);
      underWay--;
      return answer;
    };
    site = await UpdateSite.start({
      processes: true,
      versions: ["0.4.0"],
      nodes: Array.from({ length: count }, (_, index) => {
        const hostname = `n${String(index + 1).padStart(3, "0")}`;
        return { hostname, dc: index % 2 === 0 ? "DC1" : "DC2", carryOut: carryOut(hostname) };
      }),
    });
  });
  after(() => site?.stop());

  it("is watched on one screen, and never has more nodes down than may be", async () => {
    const file = site.writeManifest("many", {
      target: { version: "0.4.0" },
      selector: { allNodes: true },
      strategy: { type: "batch", maxUnavailable },
      approvalPolicy: "auto",
    });
    const shell = await site.openShell(120, 24);
    try {
      const words = `apply -f ${file} --bundle 0.4.0 --passphrase-file passphrase -w`;
      await shell.enter(`clear; ${kcoreProgram} update cluster ${words}; echo code $?`);
      await eventually(async () => {
        const { updates } = await (site.controllers[0] as TestController).operator.call("listUpdates", {});
        return updates[0]?.done === count - 1;
      });
      const screen = await shell.shows(/^rolling_out for \S+: 199\/200 done; owner /m);
      expect(screen)
        .to.match(/^DC2 +100 +99 +1$/m)
        .and.to.match(/^n200 +DC2 +\d+ +activating /m);
      expect(screen).not.to.match(/^n001 /m);
      held.resolve({ ok: true });
      expect(await shell.shows(/code 0/)).to.match(/^succeeded for \S+: 200\/200 done/m);
    } finally {
      await shell.close();
    }
    expect(most).to.be.within(2, maxUnavailable);
  });
});
