import { inOrder, labSamples } from "#support/lab-samples.ts";

/** Samples that need a kernel of their own, in order. */
export const samples = inOrder(
  `
  sysctl.set vm, kernel_module.loaded really, hostname.set vm, clock.synchronized, swap.managed,
  disk.partitioned vm, swap.enabled, lvm.physical_volume vm, lvm.volume_group vm, lvm.logical_volume,
  disk.partitioned raid, md.array, luks.opened, luks.escrowed`,
  labSamples("machine"),
);
