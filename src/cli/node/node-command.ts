import { Command } from "commander";
import { addNodeChanges } from "./node-changes.ts";
import { addNodeHardware, addNodeInstall } from "../install/install-command.ts";

/** `kcore node …`. */
export function nodeCommand(): Command {
  const node = new Command("node").description("The cluster's nodes");
  addNodeInstall(node);
  addNodeHardware(node);
  addNodeChanges(node);
  return node;
}
