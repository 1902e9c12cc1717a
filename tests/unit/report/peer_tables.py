"""Small tables as other projects write them."""

HEAD = "idx\tlabel\tpredict\tradius\tcorrect\ttime"

# Input 0 is best at 0.25, 1 at 0.5 and 2 at 1; nobody is right about input 3.
GAUSSIAN = {
    0.25: ["0\t3\t3\t0.9412\t1\t1", "1\t7\t7\t0.3\t1\t1", "2\t1\t-1\t0.0\t0\t1", "3\t5\t2\t0.5\t0\t1"],
    0.5: ["0\t3\t3\t0.6\t1\t1", "1\t7\t7\t0.8123\t1\t1", "2\t1\t1\t0.3\t1\t1", "3\t5\t2\t0.7\t0\t1"],
    1.0: ["0\t3\t4\t0.2\t0\t1", "1\t7\t7\t0.6\t1\t1", "2\t1\t1\t1.1231\t1\t1", "3\t5\t-1\t0.0\t0\t1"],
}


def write_lines(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def write_sigmas(folder, column=False):
    """A table for each sigma, noise_0.25.tsv and so on; with a column sigma if asked."""
    return {
        sigma: write_lines(
            folder / f"noise_{sigma:g}.tsv",
            HEAD + "\tsigma" * column,
            *(line + f"\t{sigma:g}" * column for line in lines),
        )
        for sigma, lines in GAUSSIAN.items()
    }


def write_aces(folder):
    """A selector, a certifier and a core network in the formats of eth-sri/ACES.

    Inputs 0 to 2 go to the certifier, which is right, wrong and abstains; 3 and 4 to the core, which is right and
    wrong. On 5 to 7 the selector abstains: certifier and core agree, only the certifier is right, neither is.
    """
    chosen = ["0\t1\t0.947\t1", "20\t1\t0.947\t1", "40\t1\t0.4\t1", "60\t0\t0.3\t0", "80\t0\t0.947\t0"]
    chosen += [f"{idx}\t-1\t0.0\t0" for idx in (100, 120, 140)]
    certified = ["0\t3\t3\t0.373", "20\t8\t7\t0.6", "40\t4\t-1\t0.0", "60\t7\t7\t0.918", "80\t2\t2\t0.1"]
    certified += ["100\t1\t1\t0.2", "120\t5\t5\t0.5", "140\t6\t2\t0.4"]
    answered = ["0\t3\t1", "20\t8\t8", "40\t4\t4", "60\t7\t7", "80\t2\t9", "100\t1\t1", "120\t5\t4", "140\t6\t3"]
    return (
        write_lines(
            folder / "run_selection_0.50",
            "idx\tpredict\tradius\tunperturbed predict\ttime",
            *(f"{line}\t0:01:18.134649" for line in chosen),
        ),
        write_lines(
            folder / "run_certification",
            "idx\tlabel\tpredict\tradius\tcorrect\tunperturbed predict\tunperturbed correct\ttime",
            *(f"{line}\t{int(line.split()[1] == line.split()[2])}\t1\t1\t0:01:18.134649" for line in certified),
        ),
        write_lines(
            folder / "lanet_core_prediction",
            "idx\tlabel\tpredict\tcorrect\ttime",
            *(f"{line}\t{int(line.split()[1] == line.split()[2])}\t0:00:00.374120" for line in answered),
        ),
    )
