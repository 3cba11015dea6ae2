//! The processor: its model, and the features that codecs and accelerators need.

use super::finding::Finding;
use super::root::Root;

const AREA: &str = "processor";

/// Intel family 6 models with an In-Memory Analytics Accelerator on the die.
const IAA_MODELS: [(u32, &str); 5] = [
    (143, "Sapphire Rapids"),
    (207, "Emerald Rapids"),
    (173, "Granite Rapids"),
    (174, "Granite Rapids D"),
    (175, "Sierra Forest"),
];

/// The first processor of `/proc/cpuinfo`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    pub model_name: String,
    pub vendor: String,
    pub family: Option<u32>,
    pub model: Option<u32>,
    flags: Vec<String>,
}

impl Cpu {
    pub fn read(root: &Root) -> Option<Self> {
        let text = root.text("proc/cpuinfo")?;
        let mut cpu = Cpu::default();
        for line in text.lines().take_while(|line| !line.trim().is_empty()) {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match name.trim() {
                "model name" => value.clone_into(&mut cpu.model_name),
                "vendor_id" => value.clone_into(&mut cpu.vendor),
                "cpu family" => cpu.family = value.parse().ok(),
                "model" => cpu.model = value.parse().ok(),
                "flags" | "Features" => cpu.flags = value.split_whitespace().map(str::to_owned).collect(),
                _ => {}
            }
        }
        Some(cpu)
    }

    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    pub fn is_virtual(&self) -> bool {
        self.has("hypervisor")
    }

    /// Returns the name of the generation, if it has IAA.
    pub fn iaa_generation(&self) -> Option<&'static str> {
        if self.vendor != "GenuineIntel" || self.family != Some(6) {
            return None;
        }
        IAA_MODELS
            .iter()
            .find(|(model, _)| Some(*model) == self.model)
            .map(|(_, name)| *name)
    }
}

pub fn examine(root: &Root) -> Vec<Finding> {
    let Some(cpu) = Cpu::read(root) else {
        return vec![Finding::missing(
            AREA,
            "model",
            "/proc/cpuinfo cannot be read",
            "mount /proc",
        )];
    };
    let mut name = cpu.model_name.clone();
    if name.is_empty() {
        name = "unnamed".into();
    }
    if let (Some(family), Some(model)) = (cpu.family, cpu.model) {
        name += &format!(" (family {family}, model {model})");
    }
    if cpu.is_virtual() {
        name += ", in a virtual machine";
    }
    let mut findings = vec![Finding::ok(AREA, "model", name)];
    findings.push(match cpu.iaa_generation() {
        Some(generation) => Finding::ok(
            AREA,
            "IAA on this model",
            format!("{generation} has it; see \"accelerator\" for whether it can be used"),
        ),
        None => Finding::missing(
            AREA,
            "IAA on this model",
            "not a processor known to have it",
            "needs a 4th generation Xeon Scalable (Sapphire Rapids) or later; qpl:software runs on any x86-64",
        ),
    });
    findings.push(feature(
        &cpu,
        "AVX2",
        &["avx2"],
        "QPL's software path and libdeflate run slower without it",
    ));
    findings.push(feature(
        &cpu,
        "AVX-512",
        &["avx512f", "avx512bw", "avx512vl", "avx512dq"],
        "QPL's software path uses its AVX2 or scalar kernels instead",
    ));
    if cpu.vendor == "GenuineIntel" {
        findings.push(feature(
            &cpu,
            "ENQCMD",
            &["enqcmd"],
            "shared work queues, which QPL needs, are fed by this instruction: the kernel shows it when the IOMMU is \
             on in scalable mode (intel_iommu=on,sm_on), in a virtual machine only if the hypervisor passes it on",
        ));
    }
    findings
}

fn feature(cpu: &Cpu, name: &'static str, flags: &[&str], fix: &str) -> Finding {
    let lacking: Vec<&str> = flags.iter().copied().filter(|flag| !cpu.has(flag)).collect();
    if lacking.is_empty() {
        Finding::ok(AREA, name, flags.join(" "))
    } else {
        Finding::missing(AREA, name, format!("no {}", lacking.join(" ")), fix)
    }
}
