# mice on rows of which the first ones teach and the others only get filled: IN.csv OUT.csv TRAINING_ROWS DRAWS ROUNDS SEED
# Columns are named x0, x1, ... if they hold numbers, c0, c1, ... if they hold codes of categories.

if (!requireNamespace("mice", quietly = TRUE) || !requireNamespace("nnet", quietly = TRUE)) {
  stop("the R packages mice and nnet are missing: apt-get install r-cran-mice r-cran-nnet")
}
suppressWarnings(suppressMessages(library(mice)))

words <- commandArgs(trailingOnly = TRUE)
counts <- as.integer(words[3:6])
rows <- read.csv(words[1])
for (name in grep("^c", names(rows), value = TRUE)) rows[[name]] <- factor(rows[[name]])
new <- seq_len(nrow(rows)) > counts[1]

# Without remove.collinear = FALSE, columns that go with others get no model, and their gaps stay.
# multinom refuses larger models than it thinks wise: 41 countries need more weights than the 1500 that mice allows it.
imputed <- suppressWarnings(mice(
  rows, m = counts[2], maxit = counts[3], seed = counts[4], ignore = new, printFlag = FALSE,
  remove.collinear = FALSE, nnet.MaxNWts = 100000
))

as_number <- function(column) if (is.factor(column)) as.numeric(as.character(column)) else column
drawn <- do.call(rbind, lapply(seq_len(counts[2]), function(k) as.data.frame(lapply(complete(imputed, k)[new, ], as_number))))
write.csv(drawn, words[2], row.names = FALSE, na = "nan")
