import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import type { LabNode } from "#lab/lab.ts";
import { openAuthority } from "#pki/cluster.ts";
import type { Order, OrderStep } from "#rollout/order.ts";
import type { Report } from "#rollout/records.ts";
import type { Bundle, UpdateSpec } from "#rollout/spec.ts";
import { Journal } from "#updater/journal.ts";
import { on, type Bastion } from "./deploy.ts";
import { signOwner, signUpdate } from "./signed-update.ts";

/** A node's folder of updates. */
export const updates = "/var/lib/kcore/updates";

export interface GivenUpdate {
  readonly name: string;
  readonly spec: z.input<typeof UpdateSpec>;
  readonly bundle?: Bundle;
}

/** Stands for a real node's agent: gives the updater signed orders, and reads its reports. */
export class OrderedNode {
  readonly #node: LabNode;
  readonly #bastion: Bastion;
  #seq = 0;

  constructor(node: LabNode, bastion: Bastion) {
    this.#node = node;
    this.#bastion = bastion;
  }

  async order(step: OrderStep, { name, ...update }: GivenUpdate): Promise<void> {
    const authority = await openAuthority(join(this.#bastion.home, "test"), "correct horse battery staple");
    const given: Order = {
      fence: { name, epoch: 1, owner: "c1", generation: 1, seq: ++this.#seq },
      step,
      signed: signUpdate({ authority }, name, update),
      ownership: signOwner({ authority }, name),
    };
    const aside = `${updates}/${randomUUID()}`;
    const command = `cat >${aside} && mv ${aside} ${updates}/inbox.json`;
    const { code, stderr } = await this.#node.exec(command, { input: JSON.stringify(given) });
    if (code !== 0) throw new Error(`the order did not reach the node: ${stderr}`);
  }

  /** Waits until the node's report on the last order has one of these states. */
  async until(...states: readonly Report["state"][]): Promise<Report> {
    let text = "";
    for (let left = 600; left > 0; left--) {
      // A booting node does not answer.
      text = await this.#node.exec(`cat ${updates}/journal.json`).then(
        ({ stdout }) => stdout,
        () => "",
      );
      const { report } = text === "" ? {} : Journal.parse(JSON.parse(text));
      if (report?.fence.seq === this.#seq && states.includes(report.state)) return report;
      await sleep(1_000);
    }
    const log = "journalctl -u kcore-updater -u kcore-update-work --no-pager | tail -50";
    throw new Error(`in vain: ${text}\n${await on(this.#node, log)}`);
  }

  async gives(step: OrderStep, update: GivenUpdate): Promise<Report> {
    await this.order(step, update);
    return this.until("prepared", "activated", "rolled_back", "failed");
  }
}
