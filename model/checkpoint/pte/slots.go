package pte

import "gpuscope/model/checkpoint/pte/internal/flat"

// The constants below are the slot numbers in ExecuTorch's FlatBuffers schema. A slot number identifies a
// field of a table. A union uses two slots, and the constant is the first of the two slots. Slots that this
// package does not read are named _.

const (
	programVersion = iota
	programPlans
	programConstants // constants stored in the FlatBuffer; element 0 is empty
	programDelegates // delegates stored in the FlatBuffer
	programSegments
	programConstantSegment
	programMutableSegments
	programNamed
)

const (
	planName = iota
	planContainer
	planValues
	planInputs
	planOutputs
	planChains
	planOperators
	planDelegates
	planArenas
	_ // devices of the arenas
)

const (
	containerInputs = iota
	containerOutputs
)

const valueUnion = 0

// The type numbers of the union valueUnion.
const (
	_ = iota // number 0 means that the union is absent
	typeNull
	typeInt
	typeBool
	typeDouble
	typeTensor
	typeString
	typeIntList
	typeDoubleList
	typeBoolList
	typeTensorList
	typeOptionalTensorList
)

// valueItem is the slot of the field that holds the value. Every table of the union valueUnion has only this
// field, except the table of a tensor, which has more fields.
const valueItem = 0

const (
	tensorType = iota
	tensorOffset
	tensorSizes
	tensorDimOrder
	_ // requires_grad
	tensorBuffer
	tensorAllocation
	tensorLayout
	tensorDynamism
	tensorExtra
)

const (
	allocationMemory = iota
	allocationLow
	allocationHigh
)

const (
	extraMutable = iota
	extraName
	extraLocation
	extraDevice
	extraDeviceIndex
)

const (
	chainInputs = iota
	chainOutputs
	chainInstructions
	_ // stacktrace
)

const instructionUnion = 0

const (
	callTarget = iota // index of the operator (KernelCall) or of the delegate (DelegateCall)
	callArgs
)

const (
	moveFrom = iota
	moveTo
)

const (
	jumpCondition = iota
	jumpDestination
)

const freeValue = 0

const (
	operatorName = iota
	operatorOverload
)

const (
	delegateID = iota
	delegateProcessed
	delegateOptions
)

const (
	optionKey = iota
	optionValue
)

const (
	referenceLocation = iota
	referenceIndex
)

const blobBytes = 0

const (
	segmentOffset = iota
	segmentSize
)

const (
	subsegmentIndex = iota
	subsegmentOffsets
)

const (
	namedKey = iota
	namedSegment
	namedLayout // only used in data files
)

const (
	layoutType = iota
	layoutSizes
	layoutDimOrder
)

const (
	_ = iota // version
	flatSegments
	flatNamed
)

const (
	_ = iota // version
	bundleSuites
	bundleProgram
)

const (
	suiteMethod = iota
	suiteCases
)

const (
	caseInputs = iota
	caseOutputs
)

const (
	testType = iota
	testSizes
	testData
	testDimOrder
)

var (
	programKind = &flat.Kind{
		Name: "Program",
		Fields: "version execution_plan constant_buffer backend_delegate_data segments constant_segment " +
			"mutable_data_segments named_data",
	}
	planKind = &flat.Kind{
		Name: "ExecutionPlan",
		Fields: "name container_meta_type values inputs outputs chains operators delegates " +
			"non_const_buffer_sizes non_const_buffer_device",
	}
	containerKind = &flat.Kind{Name: "ContainerMetadata", Fields: "encoded_inp_str encoded_out_str"}
	valueKind     = &flat.Kind{Name: "EValue", Fields: "val_type val"}
	tensorKind    = &flat.Kind{
		Name: "Tensor",
		Fields: "scalar_type storage_offset sizes dim_order requires_grad data_buffer_idx allocation_info " +
			"layout shape_dynamism extra_tensor_info",
	}
	allocationKind = &flat.Kind{
		Name: "AllocationDetails", Fields: "memory_id memory_offset_low memory_offset_high",
	}
	extraKind = &flat.Kind{
		Name:   "ExtraTensorInfo",
		Fields: "mutable_data_segments_idx fully_qualified_name location device_type device_index",
	}
	chainKind       = &flat.Kind{Name: "Chain", Fields: "inputs outputs instructions stacktrace"}
	instructionKind = &flat.Kind{Name: "Instruction", Fields: "instr_args_type instr_args"}
	operatorKind    = &flat.Kind{Name: "Operator", Fields: "name overload"}
	delegateKind    = &flat.Kind{Name: "BackendDelegate", Fields: "id processed compile_specs"}
	optionKind      = &flat.Kind{Name: "CompileSpec", Fields: "key value"}
	referenceKind   = &flat.Kind{Name: "BackendDelegateDataReference", Fields: "location index"}
	inlineKind      = &flat.Kind{Name: "BackendDelegateInlineData", Fields: "data"}
	bufferKind      = &flat.Kind{Name: "Buffer", Fields: "storage"}
	segmentKind     = &flat.Kind{Name: "DataSegment", Fields: "offset size"}
	subsegmentKind  = &flat.Kind{Name: "SubsegmentOffsets", Fields: "segment_index offsets"}
	namedKind       = &flat.Kind{Name: "NamedData", Fields: "key segment_index tensor_layout"}
	layoutKind      = &flat.Kind{Name: "TensorLayout", Fields: "scalar_type sizes dim_order"}
	flatKind        = &flat.Kind{Name: "FlatTensor", Fields: "version segments named_data"}
	bundleKind      = &flat.Kind{Name: "BundledProgram", Fields: "version method_test_suites program"}
	suiteKind       = &flat.Kind{Name: "BundledMethodTestSuite", Fields: "method_name test_cases"}
	caseKind        = &flat.Kind{Name: "BundledMethodTestCase", Fields: "inputs expected_outputs"}
	testValueKind   = &flat.Kind{Name: "Value", Fields: "val_type val"}
	testTensorKind  = &flat.Kind{Name: "Tensor", Fields: "scalar_type sizes data dim_order"}

	valueKinds = []*flat.Kind{
		{Name: "Null"},
		item("Int", "int_val"), item("Bool", "bool_val"), item("Double", "double_val"),
		tensorKind, item("String", "string_val"), item("IntList", "items"), item("DoubleList", "items"),
		item("BoolList", "items"), item("TensorList", "items"), item("OptionalTensorList", "items"),
	}
	instructionKinds = []*flat.Kind{
		{Name: "KernelCall", Fields: "op_index args"},
		{Name: "DelegateCall", Fields: "delegate_index args"},
		{Name: "MoveCall", Fields: "move_from move_to"},
		{Name: "JumpFalseCall", Fields: "cond_value_index destination_instruction"},
		item("FreeCall", "value_index"),
	}
	testValueKinds = []*flat.Kind{
		testTensorKind, item("Int", "int_val"), item("Bool", "bool_val"), item("Double", "double_val"),
	}
)

// item returns the Kind of a table that has a single field.
func item(name, field string) *flat.Kind { return &flat.Kind{Name: name, Fields: field} }
